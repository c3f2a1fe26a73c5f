"""What is not in the grammar of predicates is refused."""

from __future__ import annotations

import pytest

from reports.tables.predicates import ClaimError, parse


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
