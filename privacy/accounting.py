"""The privacy accountant: what releases cost together, and the ledger that stops a run at its
budget.

Every release has a Rényi divergence at each of `ORDERS` (`fedtables.privacy.releases`); they add
up, and the best order gives epsilon. The privacy random variables of "prv" are Opacus's. Compare
only numbers of the same `ADJACENCY`, `SAMPLING` and `COMPOSITION`.
"""

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from opacus.accountants import PRVAccountant
from opacus.accountants.analysis.rdp import get_privacy_spent
from scipy.optimize import brentq

from fedtables.privacy.plan import ACCOUNTANTS
from fedtables.privacy.releases import (
    ORDERS,
    GaussianSteps,
    Release,
    Steps,
    from_json,
    to_json,
    together,
)

ADJACENCY = "add or remove one record"
SAMPLING = "Poisson"
COMPOSITION = {
    "rdp": "adaptive, Rényi divergences added at each order",
    "prv": "adaptive, privacy random variables convolved",
}
LOW = tuple(order for order in ORDERS if order == int(order) and order < 64)
HIGH = tuple(order for order in ORDERS if order >= 64)
LEAST_AND_MOST = math.log(1e-3), math.log(1e6)
"""Logarithms of the noise between which `calibrate` looks."""
TOLERANCE = 1e-9
"""How far, relatively, rounding may carry what was spent over the budget."""


def epsilon(releases: Iterable[Release], delta: float, accountant: str = "rdp") -> float:
    """The epsilon at `delta` of everything released, composed; 0.0 for nothing. "rdp" converts by
    Balle et al., "Hypothesis testing interpretations and Rényi differential privacy" (2020),
    Theorem 21. "prv" is tighter but numerical, for `GaussianSteps` only, and adds its error, 0.01.
    Raises ValueError for an unknown accountant, a delta outside (0, 1) and a release that the
    accountant cannot compose.
    """
    check(delta, accountant)
    return _composed(tuple(releases), delta, accountant)


def check(delta: float, accountant: str = "rdp") -> None:
    """Raise ValueError for an unknown accountant and a delta outside (0, 1)."""
    if accountant not in ACCOUNTANTS:
        raise ValueError(f"unknown accountant {accountant!r}; known: {', '.join(ACCOUNTANTS)}")
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie in (0, 1), not {delta}")


@lru_cache(maxsize=4096)
def _composed(releases: tuple[Release, ...], delta: float, accountant: str) -> float:
    if not releases:
        return 0.0
    if accountant == "prv":
        return _prv(releases, delta)
    # Whole orders are a sum each, those between them slow series: these only beside the best whole
    # one.
    spent, best = _whole(releases, delta)
    between = tuple(
        order for order in ORDERS if best - 1 < order < best + 1 and order != int(order)
    )
    if between:
        spent, best = min((spent, best), _best(releases, between, delta))
    if best in (ORDERS[0], ORDERS[-1]):
        warnings.warn(
            "the best order lies beyond those looked at; epsilon is smaller than what is said",
            stacklevel=2,
        )
    return max(0.0, spent)


def _whole(releases: tuple[Release, ...], delta: float) -> tuple[float, float]:
    """The smallest epsilon that a whole order gives, and that order."""
    low = _best(releases, LOW, delta)
    return min(low, _best(releases, HIGH, delta)) if low[1] == LOW[-1] else low


def _best(
    releases: tuple[Release, ...], orders: tuple[float, ...], delta: float
) -> tuple[float, float]:
    """The smallest epsilon that one of `orders` gives, and that order."""
    with warnings.catch_warnings():  # the best of some orders may be the first or last of them
        warnings.filterwarnings("ignore", message="Optimal order is the")
        spent, best = get_privacy_spent(
            orders=orders, rdp=sum(release.rdp(orders) for release in releases), delta=delta
        )
    return float(spent), float(best)


def _prv(releases: tuple[Release, ...], delta: float) -> float:
    ledger = PRVAccountant()
    for part in releases:
        if not isinstance(part, GaussianSteps):
            raise ValueError(
                f"the accountant 'prv' composes GaussianSteps only, not {type(part).__name__}; use"
                " 'rdp'"
            )
        ledger.history.append((part.noise_multiplier, part.sample_rate, part.steps))
    # A sample rate of 1 has losses down to log 0, rightly. Opacus bounds the range of losses by its
    # coarser Rényi accountant; a loose bound there only costs time.
    with warnings.catch_warnings(), np.errstate(divide="ignore"):
        warnings.filterwarnings("ignore", message="Optimal order is the")
        return float(ledger.get_epsilon(delta))


def calibrate(
    releases_of: Callable[[float], Sequence[Release]],
    target: float,
    delta: float,
    accountant: str = "rdp",
) -> float:
    """The smallest noise at which `releases_of(noise)` costs at most `target`, within 0.1 % and
    from above; more noise must never cost more. Raises ValueError where no noise between 1e-3 and
    1e6 meets the target, or every one does.
    """
    if not 0 < target < math.inf:
        raise ValueError(f"the target epsilon must be positive and finite, not {target}")

    def over(log_noise: float, exact: bool = True) -> float:
        """Logarithm of what the noise costs over the target, which is nearly linear."""
        releases = tuple(releases_of(math.exp(log_noise)))
        spent = epsilon(releases, delta, accountant) if exact else _whole(releases, delta)[0]
        return math.log(max(spent, 1e-300) / target)

    if (beside := over(LEAST_AND_MOST[1])) > 0:
        raise ValueError(
            f"no noise meets the target epsilon {target:g} at delta {delta:g}:"
            f" {math.exp(beside) * target:.4g} remains at {math.exp(LEAST_AND_MOST[1]):.1g}; raise"
            " the target or delta, or release less of what the noise does not cover"
        )
    # First at whole orders alone, which cost little and never say too little.
    exact = over(LEAST_AND_MOST[1], exact=False) > 0
    high = 0.0
    while over(high, exact) > 0:
        high += 1
    while over(high - 1, exact) <= 0:
        if high < LEAST_AND_MOST[0]:
            raise ValueError(
                f"every noise meets the target epsilon {target:g} at delta {delta:g}: lower the"
                " target"
            )
        high -= 1
    high = brentq(over, high - 1, high, args=(exact,), xtol=1e-3) + 1e-3
    while over(high) > 0:  # the numerical accountant adds the error that it allows for
        high += 0.05
    low = high - 0.05
    while over(low) <= 0:
        low -= 0.1
    root = brentq(over, low, high, xtol=3e-4)
    while over(root) > 0:
        root += 2e-4
    return math.exp(root)


class _Headroom:
    """Which ledgers a budget affords under the numerical accountant, which takes up to seconds for
    each that it composes.

    Fewer steps never cost more. So a ledger that grows is composed with more steps than it has, and
    where the budget affords those it affords all below: a run that spends step by step composes
    some tens of ledgers, not one for each step.
    """

    def __init__(self, delta: float, limit: float):
        self._delta = delta
        self._limit = limit
        self._ahead = 0.0  # a plan that is booked at once is composed as it is
        self._afforded: set[tuple[GaussianSteps, ...]] = set()
        self._refused: set[tuple[GaussianSteps, ...]] = set()

    def affords(self, ledger: tuple[GaussianSteps, ...]) -> bool:
        while True:
            if any(_within(ledger, known) for known in self._afforded):
                return True
            if any(_within(known, ledger) for known in self._refused):
                return False
            probe = tuple(
                replace(entry, steps=int(entry.steps * (1 + self._ahead))) for entry in ledger
            )
            if any(_within(known, probe) for known in self._refused):
                self._ahead /= 2  # in the end the probe is the ledger
            elif epsilon(probe, self._delta, "prv") <= self._limit:
                self._afforded.add(probe)
                self._ahead = min(1.0, 2 * self._ahead + 0.1)
            else:
                self._refused.add(probe)
                self._ahead /= 2


def _within(ledger: tuple[GaussianSteps, ...], other: tuple[GaussianSteps, ...]) -> bool:
    """Whether `ledger` has the same mechanisms as `other`, each for at most as many steps."""
    return len(ledger) == len(other) and all(
        replace(mine, steps=theirs.steps) == theirs and mine.steps <= theirs.steps
        for mine, theirs in zip(ledger, other, strict=True)
    )


class BudgetExhaustedError(Exception):
    """A release would pass the budget; it was not booked."""


class Accountant:
    """The privacy ledger of one run, with its budget.

    Parties are clients with disjoint records. So a run has spent what its most expensive party has.
    Noise and sampling rate must not depend on earlier releases.
    """

    def __init__(self, epsilon: float, delta: float, accountant: str = "rdp"):
        """Start with nothing spent.

        Args:
            epsilon: the budget; `math.inf` only keeps the ledger.
            delta: in (0, 1).
            accountant: `rdp`, or `prv` (tighter, Gaussian noise only).

        Raises:
            ValueError: an argument is out of range.
        """
        if not epsilon > 0:
            raise ValueError(f"the budget must be a positive epsilon, not {epsilon}")
        check(delta, accountant)
        self.budget = epsilon
        self.delta = delta
        self.accountant = accountant
        self._ledger: dict[int, tuple[Steps, ...]] = {}
        self._limit = epsilon * (1 + TOLERANCE)
        self._headroom = _Headroom(delta, self._limit)

    def affords(self, party: int, *releases: Steps) -> bool:
        """Whether the budget allows `party` all of `releases`."""
        return self._within(together([*self.releases(party), *releases]))

    def spend(self, party: int, *releases: Steps) -> None:
        """Book all of `releases`.

        Raises:
            BudgetExhaustedError: they would exceed the budget. Then nothing is booked.
        """
        ledger = together([*self.releases(party), *releases])
        if not self._within(ledger):
            raise BudgetExhaustedError(
                f"party {party} has spent epsilon {self.epsilon(party):.6g} of {self.budget:g} at"
                f" delta {self.delta:g}; what it asks for would make it"
                f" {epsilon(ledger, self.delta, self.accountant):.6g}: stop here, or raise the"
                " budget or the noise"
            )
        self._ledger[party] = ledger

    def epsilon(self, party: int | None = None) -> float:
        """Epsilon spent by `party`, or by the whole run."""
        ledgers = set(self._ledger.values()) if party is None else {self.releases(party)}
        return max(
            (epsilon(ledger, self.delta, self.accountant) for ledger in ledgers), default=0.0
        )

    def releases(self, party: int) -> tuple[Steps, ...]:
        """All releases of `party`, summed by mechanism."""
        return self._ledger.get(party, ())

    def state_dict(self) -> dict[str, Any]:
        """The ledger as plain values; the budget is the caller's."""
        return {
            "parties": [
                [party, [to_json(entry) for entry in ledger]]
                for party, ledger in self._ledger.items()
            ]
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._ledger = {
            party: tuple(from_json(entry) for entry in ledger) for party, ledger in state["parties"]
        }

    def to_json(self) -> dict[str, Any]:
        """What a record keeps: spent, budget, conventions, and the releases that cost most."""
        spent = {party: self.epsilon(party) for party in self._ledger}
        most = max(spent, key=spent.__getitem__, default=-1)
        releases = self.releases(most)
        sampled = any(isinstance(r, GaussianSteps) and r.sample_rate < 1 for r in releases)
        return {
            "epsilon": spent.get(most, 0.0),
            "budget": None if math.isinf(self.budget) else self.budget,
            "delta": self.delta,
            "accountant": self.accountant,
            "adjacency": ADJACENCY,
            "sampling": SAMPLING if sampled else "none",
            "composition": COMPOSITION[self.accountant],
            "parties": len(spent),
            "releases": [to_json(release) for release in releases],
        }

    def _within(self, ledger: tuple[Steps, ...]) -> bool:
        gaussian = tuple(entry for entry in ledger if isinstance(entry, GaussianSteps))
        if self.accountant == "prv" and len(gaussian) < len(ledger):
            raise ValueError("the accountant 'prv' composes GaussianSteps only; use 'rdp'")
        if math.isinf(self.budget):
            return True
        if self.accountant == "prv":
            return self._headroom.affords(gaussian)
        return epsilon(ledger, self.delta, self.accountant) <= self._limit
