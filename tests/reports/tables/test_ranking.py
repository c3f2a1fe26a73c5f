"""Ranks over conditions, by hand and by tables of the literature."""

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedtables.reports.tables.ranking import (
    complete,
    critical_difference,
    friedman,
    front,
    mean_ranks,
)


def by_method(**values):
    return pd.DataFrame(values).T


def test_ranks_are_means_over_conditions_and_equals_share_theirs():
    values = by_method(a=[0.9, 0.5, 0.7], b=[0.8, 0.5, 0.6], c=[0.1, 0.9, 0.6])
    ranks = mean_ranks(values)
    assert ranks.to_dict() == pytest.approx(
        {"a": (1 + 2.5 + 1) / 3, "c": (3 + 1 + 2.5) / 3, "b": (2 + 2.5 + 2.5) / 3}
    )
    assert list(ranks.index) == ["a", "c", "b"]


def test_a_method_that_lacks_a_condition_is_not_ranked_and_a_condition_of_none_does_not_count():
    values = by_method(a=[1.0, 2.0, math.nan], b=[1.0, math.nan, math.nan], c=[3.0, 1.0, math.nan])
    kept = complete(values)
    assert list(kept.index) == ["a", "c"]
    assert kept.shape[1] == 2


def test_friedmans_statistic_by_hand():
    # Three methods, always in one order, four conditions: chi2 = 12 / (4 * 3 * 4) * (16 + 64 + 144)
    # - 3 * 4 * 4 = 8, of two degrees of freedom: p = exp(-4).
    values = by_method(a=[3.0] * 4, b=[2.0] * 4, c=[1.0] * 4)
    assert friedman(values) == pytest.approx(math.exp(-4))
    assert math.isnan(friedman(values.iloc[:2]))


@pytest.mark.parametrize(("methods", "quantile"), [(2, 1.960), (4, 2.569), (10, 3.164)])
def test_the_critical_difference_has_the_quantiles_of_demsars_table_5(methods, quantile):
    expected = quantile * math.sqrt(methods * (methods + 1) / (6 * 14))
    assert critical_difference(methods, 14) == pytest.approx(expected, abs=2e-3)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1))
def test_someone_is_always_on_the_front_and_everyone_else_is_beaten_by_one_who_is(points):
    costs, gains = zip(*points, strict=True)
    on = front(costs, gains)
    assert any(on)
    best = [point for point, is_on in zip(points, on, strict=True) if is_on]
    assert all(any(c <= cost and g >= gain for c, g in best) for cost, gain in points)
