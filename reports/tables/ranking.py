"""Which of several methods is better over several conditions: mean ranks, whether they differ by
more than chance, and which methods nothing beats on two axes at once.

Demsar, J. (2006), Statistical comparisons of classifiers over multiple data sets, Journal of
Machine Learning Research 7, 1-30.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

ALPHA = 0.05
"""Level of both tests."""


def complete(values: pd.DataFrame) -> pd.DataFrame:
    """Of values by method (rows) and condition (columns) the methods that have one in every
    condition in which any method has one: the others cannot be ranked with them.
    """
    known = values.dropna(axis="columns", how="all")
    return known.dropna(axis="index") if known.shape[1] else known.iloc[:0]


def mean_ranks(values: pd.DataFrame) -> pd.Series:
    """The mean over conditions of each method's rank, 1 for the best, which has the highest value;
    equal values share the mean of their ranks. `values` as `complete` gives them.
    """
    return values.rank(axis="index", ascending=False).mean(axis="columns").sort_values()


def friedman(values: pd.DataFrame) -> float:
    """The p-value that all methods are alike (Friedman's test, SciPy's); not a number for fewer
    than three methods or two conditions.
    """
    from scipy.stats import friedmanchisquare

    methods, conditions = values.shape
    if methods < 3 or conditions < 2:
        return math.nan
    return float(friedmanchisquare(*values.to_numpy()).pvalue)


def critical_difference(methods: int, conditions: int) -> float:
    """By how much two mean ranks of `methods` over `conditions` must differ to be told apart at the
    level `ALPHA` (Nemenyi's test, Demsar's Eq. 6); infinite without a condition.
    """
    from scipy.stats import studentized_range

    if methods < 2 or conditions < 1:
        return math.inf
    quantile = float(studentized_range.ppf(1 - ALPHA, methods, math.inf)) / math.sqrt(2)
    return quantile * math.sqrt(methods * (methods + 1) / (6 * conditions))


def front(costs: Sequence[float], gains: Sequence[float]) -> list[bool]:
    """Which of several points no other one beats: none has a lower cost and as high a gain, or as
    low a cost and a higher gain. A point without one of its numbers is beaten.
    """
    points = list(zip(costs, gains, strict=True))

    def beaten(cost: float, gain: float) -> bool:
        return any(c <= cost and g >= gain and (c < cost or g > gain) for c, g in points)

    return [
        math.isfinite(cost) and math.isfinite(gain) and not beaten(cost, gain)
        for cost, gain in points
    ]


@dataclass(frozen=True)
class Spot:
    """A method in a plane; where it was run at several costs, one of its places."""

    row: str
    cost: float
    gain: float
    """The more the better."""
    on_front: bool
    """Whether no other place of the plane beats it (`front`)."""
    cut_short: bool = False


def spots(places: Iterable[tuple[str, float, float, bool]]) -> tuple[Spot, ...]:
    """The places of one plane, each given as row, cost, gain and whether it was cut short; those
    that lack a number are beaten.
    """
    known = list(places)
    on = front([cost for _, cost, _, _ in known], [gain for _, _, gain, _ in known])
    return tuple(
        Spot(row, cost, gain, on_front, short)
        for (row, cost, gain, short), on_front in zip(known, on, strict=True)
    )
