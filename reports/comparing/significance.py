"""The tests of the regression report: of one cell over seeds, and of all cells together.

Welch, B. L. (1947), Biometrika 34, 28-35; Holm, S. (1979), Scandinavian Journal of Statistics 6,
65-70.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import TypeVar

from results.store import Line

T = TypeVar("T", bound=Hashable)


def measurements(base: Line, new: Line) -> tuple[int, int]:
    """How many measurements either side is the mean of: its seeds. Where the values of neither side
    differ over seeds, these move nothing that the cell depends on: they are one measurement.
    """
    if not any(float(cell["std"] or 0) for cell in (base, new)):
        return 1, 1
    return int(base["n"]), int(new["n"])


def p_value(base: Line, new: Line, sign: int, noise: float = 0.0) -> float:
    """One-sided p-value that `new` is worse than `base`; two-sided for a metric without a direction
    (`sign` 0).

    Welch's t-test, where no spread over seeds is taken for smaller than `noise`, the standard
    deviation that one run has anyway. With one measurement on a side there is no spread of it: then
    a z-test with the largest that is known. Raises ValueError if none is.
    """
    from scipy.stats import norm, ttest_ind_from_stats

    means = float(base["value"]), float(new["value"])
    stds = [max(float(cell["std"] or 0), noise) for cell in (base, new)]
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
