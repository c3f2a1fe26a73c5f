"""What is never compared."""

from __future__ import annotations

import pytest

from reports.comparing.compare import compare_results
from reports.comparing.rule import Rule
from reports.tables.resultset import read_pair
from results.files import ResultsError
from tests.reports.comparing.sets import (
    differences,
    line,
    record,
    result_set,
    verdicts,
    with_records,
)


@pytest.mark.parametrize(
    "name", ["profile", "protocol", "data", "origin", "public", "public_origin"]
)
def test_sets_of_different_kind_are_never_compared(tmp_path, name):
    # Of a whole table, though no cell is in common.
    row = "b" if name in ("profile", "protocol") else "a"
    base, new = (
        result_set(tmp_path, "a", line()),
        result_set(tmp_path, "b", line(**{"row": row, name: "other"})),
    )
    with pytest.raises(ResultsError, match=f"{name} is .* not comparable"):
        verdicts(base, new)


@pytest.mark.parametrize("kind", ["data", "public"])
def test_data_of_another_digest_are_never_compared(tmp_path, kind):
    base, new = (
        with_records(tmp_path, name, record(**{kind: {"digest": d}}))
        for name, d in (("a", "1"), ("b", "2"))
    )
    with pytest.raises(
        ResultsError, match=r"t a n=1: digest of .*data is '1' and '2'; these are not comparable"
    ):
        differences(base, new)


def test_records_of_another_table_are_never_compared(tmp_path):
    base, new = (
        with_records(tmp_path, "a", record()),
        with_records(tmp_path, "b", record(table="p/u")),
    )
    with pytest.raises(ResultsError, match="table is 'p/t' and 'p/u'"):
        compare_results(*read_pair(base / "t.csv", new / "t.csv"), Rule())
