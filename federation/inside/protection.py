"""What a differentially private run adds to a federation: one budget per client, and who has spent
what.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from federation.client import Client
from federation.training.plan import TrainingPlan
from federation.training.private import PrivateSteps
from privacy.accounting import Accountant, calibrate
from privacy.plan import RELEASED, PrivacyPlan
from privacy.releases import GaussianSteps, Steps


class Protection:
    """The plan, the accountant, and the noise of every client's training.

    Clients hold disjoint samples (`assemble` refuses others), so that what one releases costs only
    its own budget.
    """

    def __init__(self, plan: PrivacyPlan, kinds: frozenset[str], group: int = 1):
        """`kinds` are the payloads that the method sends under the plan's mechanism, every one of
        them protected; `group` is how many samples of one group, such as a patient, clients hold.
        """
        self.plan = plan
        self.kinds = kinds
        self.unit = unit_of(group)
        """Of what epsilon is."""
        self.accountant = Accountant(plan.epsilon, plan.delta, plan.accountant)
        self.notes: list[str] = []
        """What a reader of the run must know: for example that it stopped before its budget would
        have been passed."""
        self.details: dict[str, Any] = {}
        """More for the record, by name."""
        self._noise: dict[int, float] = {}

    @property
    def counts(self) -> tuple[GaussianSteps, ...]:
        """What releasing a client's label counts costs: one more or one less sample changes them by
        1.
        """
        noisy = "labels" in self.kinds and self.plan.mechanism != RELEASED
        return (GaussianSteps(self.plan.counts_noise, 1.0, 1),) if noisy else ()

    def reserve(self, client: Client, *trainings: tuple[TrainingPlan, int]) -> None:
        """Choose the noise of a client's DP-SGD such that all of `trainings`, (plan, times), stay
        within its budget.

        Before the first of them. A training that nobody reserved is taken for the client's only
        one.
        """
        shapes = tuple(
            (sample_rate(client, plan), steps_of(client, plan) * times)
            for plan, times in trainings
            if times
        )
        if client.size and shapes and client.index not in self._noise:
            self._noise[client.index] = self.plan.noise_multiplier or smallest_noise(
                self.plan, self.counts, shapes
            )

    def training(self, client: Client, plan: TrainingPlan) -> PrivateSteps:
        """How `client` trains by `plan` with what is left of its budget; no steps if nothing is."""
        self.reserve(client, (plan, 1))
        noise, rate = (
            self._noise.get(client.index, self.plan.noise_multiplier),
            sample_rate(client, plan),
        )
        steps = self._affordable(
            client, functools.partial(GaussianSteps, noise, rate), steps_of(client, plan)
        )
        return PrivateSteps(noise, rate, steps, self.plan.clip_norm)

    def spend(self, client: Client, *releases: Steps) -> None:
        """Book what `client` is about to release. Raises BudgetExhaustedError if it would pass the
        budget.
        """
        self.accountant.spend(client.index, *releases)

    def note(self, text: str) -> None:
        """Keep a note for the record, once."""
        if text not in self.notes:
            self.notes.append(text)

    def state_dict(self) -> dict[str, Any]:
        """Plain values, for snapshots and for the stage of a fit."""
        return {
            "accountant": self.accountant.state_dict(),
            "notes": list(self.notes),
            "details": dict(self.details),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.accountant.load_state_dict(state["accountant"])
        self.notes = list(state["notes"])
        self.details = dict(state["details"])

    def _affordable(
        self, client: Client, release: functools.partial[GaussianSteps], steps: int
    ) -> int:
        """The largest number of steps, up to `steps`, that the budget of `client` has room for."""
        if not client.size or self.accountant.affords(client.index, release(steps)):
            return steps
        low, high = 0, steps
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (
                (middle, high)
                if self.accountant.affords(client.index, release(middle))
                else (low, middle)
            )
        self.note(f"stopped before the budget of {self.plan.epsilon:g} would have been passed")
        return low


def unit_of(group: int) -> str:
    """What one more or one less costs epsilon, where a group such as a patient has up to `group`
    samples.
    """
    if group == 1:
        return "one sample"
    return f"one sample, not one person: a group, such as a patient, has up to {group} samples"


def sample_rate(client: Client, plan: TrainingPlan) -> float:
    """Of Poisson sampling: batches have the plan's size on average."""
    return min(1.0, plan.batch_size / max(1, client.size))


def steps_of(client: Client, plan: TrainingPlan) -> int:
    """Steps of DP-SGD in a plan's epochs."""
    return plan.epochs * math.ceil(1 / sample_rate(client, plan))


@functools.lru_cache(maxsize=4096)  # clients of one size have the same
def smallest_noise(
    plan: PrivacyPlan, beside: tuple[Steps, ...], shapes: Sequence[tuple[float, int]]
) -> float:
    """The smallest noise multiplier with which steps of `shapes`, (sample rate, steps), and what is
    released `beside` them stay within the plan's budget."""

    def released(noise: float) -> list[Steps]:
        return [*beside, *(GaussianSteps(noise, rate, steps) for rate, steps in shapes)]

    return calibrate(released, plan.epsilon, plan.delta, plan.accountant)
