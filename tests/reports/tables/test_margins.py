"""Margins over seeds: intervals by hand, and how often many looks err."""

import math

import numpy as np
import pytest

from fedtables.reports.tables.margins import (
    LOOKS,
    Standing,
    interval,
    seeds_needed,
    standing,
)


def test_an_interval_by_hand():
    # Student's 99.1 % quantile of two degrees of freedom is 7.352; the deviation of 1, 2, 3 is 1.
    low, high = interval([1.0, 2.0, 3.0])
    assert (low + high) / 2 == pytest.approx(2.0)
    assert (high - low) / 2 == pytest.approx(7.352 / math.sqrt(3), abs=1e-3)
    assert interval([0.5]) == interval([0.5, 0.5]) == (0.5, 0.5)
    assert interval([0.4, 0.5]) == interval([0.5, math.inf, 0.5]) == (-math.inf, math.inf)


CLEAR, SMALL, WIDE = [5.0, 5.1, 4.9], [0.05, -0.02, 0.01], [3.0, -1.0, 2.0]


@pytest.mark.parametrize(
    ("margins", "same", "found"),
    [
        (CLEAR, 0.0, Standing.ABOVE),
        ([-m for m in CLEAR], 0.0, Standing.BELOW),
        (WIDE, 0.0, Standing.OPEN),
        (SMALL, 0.0, Standing.OPEN),
        (SMALL, 1.0, Standing.SAME),
        (CLEAR, 10.0, Standing.SAME),  # clear, and small beside what is printed
        ([0.2], 1.0, Standing.ABOVE),  # one seed has no interval
        (WIDE, 1.0, Standing.OPEN),
    ],
)
def test_a_margin_is_above_below_as_good_as_none_or_open(margins, same, found):
    assert standing(margins, strict=True, same=same) is found


def test_a_margin_of_nothing_is_one_where_equality_is_allowed():
    assert standing([0.0] * 3, strict=False) is Standing.ABOVE
    assert standing([0.0] * 3, strict=True) is Standing.BELOW


def test_the_seeds_that_a_margin_needs():
    assert seeds_needed([5.0]) == 3
    # Mean 2, deviation 1: the interval of 6 seeds is 3.44 / sqrt 6 = 1.40 either way, of 12 0.80.
    assert seeds_needed([1.0, 2.0, 3.0]) == 6
    assert seeds_needed([0.0, 1.0, 2.0]) == 12
    assert seeds_needed([-1.0, 0.0, 1.0]) == math.inf
    assert seeds_needed([-1.0, 0.0, 1.0], same=2.0) == 6
    assert seeds_needed([0.0, 1.0, 2.0] * 4) == math.inf  # there is no look after the last


@pytest.mark.parametrize(
    ("mean", "wrong"),
    [
        (0.0, {Standing.ABOVE, Standing.BELOW}),  # there is no difference
        (1.0, {Standing.BELOW, Standing.SAME}),  # it is what counts as one, and no less
    ],
)
def test_all_looks_together_err_in_5_percent(mean, wrong):
    runs, draws = 1_000, np.random.default_rng(0)
    errors = 0
    for margins in (mean + draws.standard_normal((runs, LOOKS[-1]))).tolist():
        looks = (standing(margins[:n], strict=True, same=1.0) for n in LOOKS)
        closed = next((look for look in looks if look is not Standing.OPEN), None)
        errors += closed in wrong
    assert errors <= 0.05 * runs


@pytest.mark.parametrize(("mean", "seeds"), [(10.0, 3.5), (3.0, 5.0), (1.0, 10.0)])
def test_a_clear_difference_takes_few_seeds_and_a_narrow_one_many(mean, seeds):
    """`mean` is in deviations. A fixed number that serves all three would be the last look's."""
    draws, spent = np.random.default_rng(0), []
    for margins in (mean + draws.standard_normal((300, LOOKS[-1]))).tolist():
        closed = (n for n in LOOKS if standing(margins[:n], strict=True) is not Standing.OPEN)
        spent.append(next(closed, LOOKS[-1]))
    assert np.mean(spent) < seeds
