"""What a difference is over several seeds: above nothing, below it, as good as none, or not known.

Whoever adds seeds until a difference is clear looks several times, and each look may err. So there
are three looks, each has twice the seeds of the one before, and each has a 98.2 % t interval. In
under 5 % of all runs one or more of them miss the true mean. One level for all looks is the rule of
Pocock (1977). For t intervals it was found by simulation: `tests/reports/tables/test_margins.py`.
"""

import math
import statistics
from collections.abc import Sequence
from enum import Enum

LOOKS = (3, 6, 12)
"""Seeds of each look."""
LEVEL = 0.982
"""Of the interval of one look."""
SAME_SHARE, SAME_POINTS = 0.5, 1.0
"""No difference: one of less than this share of the printed difference, and of so many points."""


class Standing(Enum):
    """Where a margin stands."""

    ABOVE = "its interval is above zero"
    BELOW = "its interval is below zero"
    SAME = "its interval is within what counts as no difference"
    OPEN = "its interval has room for more than one of these"


def _quantile(count: int) -> float:
    """Student's, of `count` seeds."""
    # Only where it is needed; `scipy.stats` takes three times as long to import.
    from scipy.special import stdtrit

    return float(stdtrit(count - 1, (1 + LEVEL) / 2))


def interval(margins: Sequence[float]) -> tuple[float, float]:
    """The interval of the mean of `margins`, one for each seed: without spread that value alone,
    and infinite where nothing is known.
    """
    if len(set(margins)) == 1:  # costs of no privacy are no finite ones
        return margins[0], margins[0]
    if len(margins) < LOOKS[0] or not all(map(math.isfinite, margins)):
        return -math.inf, math.inf
    half = _quantile(len(margins)) * statistics.stdev(margins) / math.sqrt(len(margins))
    mean = statistics.fmean(margins)
    return mean - half, mean + half


def standing(margins: Sequence[float], strict: bool, same: float = 0.0) -> Standing:
    """Where a margin stands by its values, one for each seed. A `strict` one of zero is no margin.
    Within `same` either way it counts as no difference, if there are seeds for an interval.
    """
    low, high = interval(margins)
    if -same < low <= high < same and len(margins) >= LOOKS[0]:
        return Standing.SAME
    # Rounding of printed digits must not decide where equality is allowed.
    if low > 1e-12 or (not strict and low >= -1e-12):
        return Standing.ABOVE
    if high < -1e-12 or (strict and low == high):
        return Standing.BELOW
    return Standing.OPEN


def seeds_needed(margins: Sequence[float], same: float = 0.0) -> float:
    """Seeds of the look that would close a margin, if its mean and deviation stay; infinite where
    none of those to come would.
    """
    to_come = [look for look in LOOKS if look > len(margins)]
    if len(margins) < 2 or not all(map(math.isfinite, margins)):
        return min(to_come, default=math.inf)
    deviation, mean = statistics.stdev(margins), abs(statistics.fmean(margins))
    room = max(mean, same - mean)
    for count in to_come:
        if _quantile(count) * deviation / math.sqrt(count) < room:
            return count
    return math.inf
