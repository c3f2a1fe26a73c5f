"""Whether a metric had settled when its run ended, or the run was cut short."""

import math
from collections.abc import Sequence
from statistics import fmean

from fedtables.metrics.names import LOWER, facts

JUMP = 2.0
"""Points by which no single value of the last tenth may be better than the tenth before."""


def has_settled(metric: str, history: Sequence[float], within: float = 0.5) -> bool | None:
    """Whether the mean over the last tenth of a run's epochs (rounds), at least one, lies within
    `within` points of the mean over the tenth before. And no single value of the last tenth is
    better than that by more than two points. `history` has values that are evenly spread, a share
    as a fraction. A point is a hundredth of what counts as 1
    (`fedtables.metrics.names.Metric.scale`). None for fewer than two values, one that is not
    finite, and a metric without a scale. Raises ValueError unless `within` is above 0.
    """
    if not within > 0:
        raise ValueError(f"a run has settled within a tolerance above 0 points, not {within}")
    known = facts(metric)
    if len(history) < 2 or not known.scale or not all(map(math.isfinite, history)):
        return None
    point = known.scale / 100
    tenth = max(1, round(len(history) / 10))
    last, before = history[-tenth:], fmean(history[-2 * tenth : -tenth])
    apart = abs(fmean(last) - before) / point
    jump = before - min(last) if known.better == LOWER else max(last) - before
    return apart <= within and jump / point <= JUMP


def epochs_to_end(history: Sequence[float], within: float) -> int:
    """The first epoch, counted from 1, from which on a history stays `within` its last value."""
    end = history[-1]
    far = [epoch for epoch, value in enumerate(history, 1) if abs(value - end) > within]
    return max(far, default=0) + 1
