"""Correlation coefficients by hand, against print, and where there are none."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedtables.metrics.correlation import pearson, spearman

NUMBERS = st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=2, max_size=12)


def test_by_hand():
    assert pearson([1, 2, 3], [2, 4, 6]) == pytest.approx(1)
    assert pearson([1, 2, 3], [1, 3, 2]) == pytest.approx(0.5)  # 1 / sqrt(2 x 2)
    assert spearman([1, 2, 3], [1, 30, 2]) == pytest.approx(0.5)  # ranks 1, 3, 2
    assert spearman([1, 2, 3, 4], [1, 10, 100, 1000]) == pytest.approx(1)
    assert spearman([1, 2, 3], [5, 5, 6]) == pytest.approx(
        math.sqrt(3) / 2
    )  # ranks 1.5, 1.5, 3: 1.5 / sqrt(2 x 1.5)


@pytest.mark.parametrize("coefficient", [pearson, spearman])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([], []),
        ([1.0], [2.0]),
        ([1.0, 1.0], [1.0, 2.0]),
        ([1.0, 2.0], [3.0, 3.0]),
        ([1.0, math.nan], [1.0, 2.0]),
    ],
)
def test_it_is_undefined_for_too_few_or_equal_values(coefficient, first, second):
    assert math.isnan(coefficient(first, second))


@pytest.mark.parametrize("coefficient", [pearson, spearman])
def test_values_that_do_not_pair_are_refused(coefficient):
    with pytest.raises(ValueError, match=r"broadcast|dimension|length"):
        coefficient([1.0, 2.0], [1.0, 2.0, 3.0])


@given(NUMBERS)
def test_it_turns_with_the_sign_and_ranks_do_not_mind_the_scale(pairs):
    first, second = ([float(pair[i]) for pair in pairs] for i in (0, 1))
    for coefficient in (pearson, spearman):
        value = coefficient(first, second)
        assert math.isnan(value) or -1 - 1e-9 <= value <= 1 + 1e-9
        assert coefficient(first, [-y for y in second]) == pytest.approx(
            -value, abs=1e-9, nan_ok=True
        )
    assert spearman([x**3 for x in first], second) == pytest.approx(
        spearman(first, second), abs=1e-9, nan_ok=True
    )
