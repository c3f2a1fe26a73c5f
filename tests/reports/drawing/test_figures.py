"""The axes of metrics, and pictures that are the same again."""

from __future__ import annotations

import math

import pytest

from reports.drawing.figures import limits


@pytest.mark.parametrize(
    ("values", "bounds", "ends"),
    [
        ([0.2, 0.9], (0, 1), (0, 1.02)),
        ([20.0, 90.0], (0, 100), (0, 102)),
        ([math.nan, 5.0, 40.0], (0, 100), (0, 43.2)),  # 40 * 1.06, and 2 % of that
        ([99.0, 99.8], (0, 100), (98.8, 100)),  # a quarter of 0.8 on either side
        ([1.0, 4.0], (0, 100), (0, 4.3)),  # close together, but not far from zero
        ([-0.2, 0.9], (0, 1), (-0.2, 1.02)),
        ([10.0, 25.0], None, (0, 26.5)),
        ([33.0, 33.4], None, (32.9, 33.5)),
        ([math.nan], (0, 100), (0, 100)),
        ([], None, (0, 1)),
        ([0.0], None, (0, 1)),
    ],
)
def test_an_axis_ends_with_the_metric_or_with_the_values_that_do_not_reach_it(values, bounds, ends):
    assert limits(values, bounds) == pytest.approx(ends, abs=0.05)
