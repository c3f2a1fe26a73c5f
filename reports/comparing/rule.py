"""What the regression report judges by and what it says: the numbers of the rule, the difference of
one cell, and the tests, of one cell over seeds and of all cells together.

Welch, B. L. (1947), Biometrika 34, 28-35; Holm, S. (1979), Scandinavian Journal of Statistics 6,
65-70.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:  # the command line reads the rule's numbers, and need not wait for pandas
    from fedtables.reports.tables.resultset import Key
    from fedtables.results.store import Line

T = TypeVar("T", bound=Hashable)

CELL, COST, SPEED = "cell", "cost", "speed"
"""Kinds of differences: a cell of a table, a table's time or memory, a speed benchmark."""
NOT_COMPARED, UNDECIDED, OTHER = "not compared", "undecided", "other"
MOVED = "moved within spread"
"""Not the same digits, and no more than the rule explains."""
ANOTHER_MACHINE = "another machine"
"""In the reason of a cell that was tested with what test set and rounding may move."""
REGRESSIONS = ("worse", "vanished", "failed", "changed", "slower", "larger")
"""Verdicts with which a comparison fails."""


@dataclass(frozen=True)
class Rule:
    """The numbers of the rule."""

    tolerance: float = 0.02
    """Loss that one seed may show, of a fraction; assumed."""
    effect: float = 0.005
    """Smallest significant loss that matters with more seeds, of a fraction; assumed."""
    alpha: float = 0.05
    """Chance that any cell at all is wrongly called worse, where nothing but the seeds differs; the
    customary one."""
    time_ratio: float = 2.0
    """Largest ratio of times; 0 leaves them out. Assumed: shared machines differ by less from run
    to run."""
    memory_ratio: float = 1.5
    """Largest ratio of peak memory; 0 leaves it out. Assumed."""
    exact: bool = False
    """Whether a value must be the same to the last digit where seeds, machine and packages are:
    this suite's promise."""


@dataclass(frozen=True)
class Difference:
    """What became of one cell, of a table's cost, or of a speed benchmark."""

    cell: Key
    verdict: str
    """`same` (to the last digit), `moved within spread`, `better`, `worse`, `vanished`, `failed`,
    `new`, `changed` (bytes, epsilon, a metric without direction; with `exact` any) or `undecided`
    (a loss above the tolerance that the seeds' spread leaves open); of costs and speed also
    `slower`, `larger` and `not compared`, of a table's settings `other`."""
    base: str = ""
    """The value as printed."""
    new: str = ""
    why: str = ""
    p: float | None = None
    """Of the test, if there was one, before the correction."""
    values: tuple[str, str] = ("", "")
    """Base and new with all digits."""
    kind: str = CELL
    accounts: str = ""
    """What beside the value is not the same: bytes, epsilon, delta."""

    @property
    def is_regression(self) -> bool:
        return self.verdict in REGRESSIONS

    @property
    def table(self) -> str:
        return self.cell[0]

    @property
    def place(self) -> str:
        """The cell within its table."""
        return " ".join(filter(None, self.cell[1:]))


def measurements(base: Line, new: Line) -> tuple[int, int]:
    """How many measurements either side is the mean of: its seeds. Where the values of neither side
    differ over seeds, these move nothing that the cell depends on: they are one measurement.
    """
    if not any((cell["std"] or 0) for cell in (base, new)):
        return 1, 1
    return base["n"], new["n"]


def p_value(base: Line, new: Line, sign: int, noise: float = 0.0) -> float:
    """One-sided p-value that `new` is worse than `base`; two-sided for a metric without a direction
    (`sign` 0).

    Welch's t-test, where no spread over seeds is taken for smaller than `noise`, the standard
    deviation that one run has anyway. With one measurement on a side there is no spread of it: then
    a z-test with the largest that is known. Raises ValueError if none is.
    """
    from scipy.stats import norm, ttest_ind_from_stats

    means = base["value"], new["value"]
    stds = [max((cell["std"] or 0), noise) for cell in (base, new)]
    n = measurements(base, new)
    if min(n) > 1:
        alternative = {1: "less", -1: "greater", 0: "two-sided"}[sign]
        sides = (means[1], stds[1], n[1], means[0], stds[0], n[0])
        return float(ttest_ind_from_stats(*sides, equal_var=False, alternative=alternative).pvalue)
    if not max(stds):
        raise ValueError("one measurement on a side, and no spread that is known")
    z = loss_of(*means, sign) / (max(stds) * math.sqrt(1 / n[0] + 1 / n[1]))
    return float(norm.sf(z)) * (1 if sign else 2)


def explained(base: Line, new: Line, noise: float, level: float) -> float:
    """The loss that noise alone exceeds with probability `level`."""
    from scipy.stats import norm

    n = measurements(base, new)
    return float(norm.isf(level)) * noise * math.sqrt(1 / n[0] + 1 / n[1])


def loss_of(base: float, new: float, sign: int) -> float:
    """By how much `new` is worse; the distance for a metric without direction."""
    return sign * (base - new) if sign else abs(base - new)


def holm(p_values: Mapping[T, float], alpha: float) -> set[T]:
    """Hypotheses that Holm's step-down procedure rejects at the family-wise level `alpha`."""
    rejected: set[T] = set()
    for rank, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        if p > alpha / (len(p_values) - rank):
            break  # the first that is not significant ends it
        rejected.add(name)
    return rejected
