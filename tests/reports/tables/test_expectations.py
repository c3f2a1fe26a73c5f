"""Expectations of this suite's own tables, held against numbers in print."""

import pytest

from reports.tables.claims import judge_expectation
from reports.tables.predicates import Value

FAILS_SO_FAR = "cut short: 1, which fails so far"


@pytest.mark.parametrize(
    ("ours", "settled", "word"),
    [(0.9780, True, "holds"), (0.9721, True, "does not hold"), (0.9721, False, FAILS_SO_FAR)],
)
def test_an_expectation_is_held_against_the_number_that_the_paper_prints(ours, settled, word):
    """Table II of DLAD has 0.9821 for MNIST with IID clients."""
    predicate = (
        "abs(accuracy[global-dlad] - print:table2:accuracy[global-dlad @ dataset=mnist]) <= 0.0099"
        " for all distribution"
    )
    values = [Value("global-dlad", {"distribution": "iid"}, "accuracy", ours, settled)]
    verdict = judge_expectation(predicate, "dlad", "trial", {"trial": values})
    assert (verdict.word, verdict.total) == (word, 1)
    assert verdict.settled == (word == "holds")
