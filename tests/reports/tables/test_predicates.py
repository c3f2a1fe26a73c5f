"""What is not in the grammar of predicates is refused, and infinite values are compared."""

from __future__ import annotations

import math

import pytest

from reports.tables.claims import judge
from reports.tables.predicates import ClaimError, Value, parse


@pytest.mark.parametrize(
    "predicate",
    [
        "acc[a]",
        "acc[a] >",
        "frobnicate(acc[a]) > 1",
        "acc[a] ? 1",
        "argmax(acc[a @ n=* k=*]) == argmax(acc[b])",
    ],
)
def test_what_is_not_in_the_grammar_is_refused(predicate):
    with pytest.raises(ClaimError):
        parse(predicate)


def costs(a, b):
    """Measured costs of two rows; infinite without privacy."""
    return {"table1": [Value(row, {"n": "1"}, "acc", cost) for row, cost in (("a", a), ("b", b))]}


@pytest.mark.parametrize(
    ("operator", "word"), [("==", "holds"), ("<=", "holds"), (">", "does not hold")]
)
def test_two_infinite_values_are_equal(operator, word):
    ours = costs(math.inf, math.inf)
    assert judge(f"acc[a] {operator} acc[b] for all n", "table1", ours).word == word


def test_a_difference_that_is_infinite_for_every_seed_decides_and_for_one_alone_does_not():
    ours, finite = costs(math.inf, 0.5), costs(0.7, 0.5)
    predicate = "acc[a] > acc[b] for all n"
    assert judge(predicate, "table1", ours, seeds=[ours] * 3).word == "holds"
    once = judge(predicate, "table1", ours, seeds=[finite, ours, finite])
    assert once.word == "undecided (spread over seeds)"
