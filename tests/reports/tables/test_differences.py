"""Differences between seeds: no difference, and chains that fail."""

from dataclasses import replace

import pytest

from fedtables.reports.tables.claims import Outcome, judge
from fedtables.reports.tables.predicates import Value


def measured(settled=True, **values):
    """The metric acc of rows, in percent, at n=1."""
    return {
        "table1": [
            Value(row, {"n": "1"}, "acc", number, settled, negligible=1.0)
            for row, number in values.items()
        ]
    }


@pytest.mark.parametrize(
    ("printed", "word"),
    [
        (4.0, "no difference"),  # 0.3 points are less than half of 4, and than one point
        (1.0, "no difference"),
        (0.4, "undecided (spread over seeds)"),  # 0.2 is within the interval
        (None, "no difference"),
        (-4.0, "no difference"),  # print has it the other way
    ],
)
def test_a_difference_that_is_small_beside_the_printed_one_is_none(printed, word):
    seeds = [measured(a=60.0 + d, b=60.0) for d in (0.05, -0.05, 0.0)]  # 0.21 either way
    in_print = None if printed is None else measured(a=60.0 + printed, b=60.0)
    verdict = judge("acc[a] > acc[b]", "table1", measured(a=60.0, b=60.0), None, seeds, in_print)
    assert verdict.word == word


def test_what_runs_cost_differs_whatever_print_has():
    seeds = [{"table1": [replace(v, negligible=0.0) for v in measured(a=2.0, b=1.0)["table1"]]}] * 3
    in_print = measured(a=2_000.0, b=1_000.0)
    assert judge("acc[a] > acc[b]", "table1", seeds[0], None, seeds, in_print).word == "holds"


def test_no_difference_is_no_end_where_runs_were_cut_short():
    seeds = [measured(False, a=60.0 + d, b=60.0) for d in (0.05, -0.05, 0.0)]
    verdict = judge("acc[a] > acc[b]", "table1", seeds[2], seeds=seeds)
    assert verdict.word == "no difference (1 before its run settled)"
    assert verdict.outcomes == {Outcome.SAME_EARLY: 1}


def test_a_number_in_the_claim_leaves_no_room_for_no_difference():
    seeds = [measured(a=60.0 + d, b=60.0) for d in (0.05, -0.05, 0.0)]
    for predicate in ("acc[a] > acc[b] + 0.01", "acc[a] == acc[b]"):
        verdict = judge(predicate, "table1", seeds[2], seeds=seeds)
        assert verdict.word == "undecided (spread over seeds)"


def test_a_chain_fails_with_its_first_difference_that_clearly_does():
    seeds = [measured(a=1.0, b=2.0 + d, c=2.0 - d) for d in (0.1, -0.1, 0.0)]
    assert (
        judge("acc[a] > acc[b] > acc[c]", "table1", seeds[2], seeds=seeds).word == "does not hold"
    )


def test_seeds_that_lack_a_value_are_left_out():
    seeds = [measured(a=60.0 + d, b=50.0) for d in (0.05, -0.05, 0.0)]
    assert judge("acc[a] > acc[b]", "table1", seeds[2], seeds=[*seeds, measured(a=1.0)]).word == (
        "holds"
    )
