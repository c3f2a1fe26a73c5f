"""Cells that no spreadsheet runs, and that come back as they were."""

from __future__ import annotations

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.comparing.rule import Difference
from reports.comparing.summaries import write_differences
from results.spreadsheet import quoted, unquoted
from results.store import read_csv, write_csv

COLUMNS = ("row", "column", "metric", "value", "std", "n")


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=1+1", "'=1+1"),
        ("+mimic", "'+mimic"),
        ("-row", "'-row"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("'=1", "''=1"),
        ("'plain", "'plain"),
        ("-1.5", "-1.5"),
        ("+5", "+5"),
        ("-inf", "-inf"),
        ("-1_0", "'-1_0"),
        ("", ""),
        ("row", "row"),
    ],
)
def test_only_what_would_be_run_gets_a_quote(cell, written):
    assert quoted(cell) == written
    assert unquoted(written) == cell


@given(st.text(alphabet="=+-@\t\r'a1. \n"))
def test_every_cell_comes_back(cell):
    assert unquoted(quoted(cell)) == cell
    assert not quoted(cell).startswith(("=", "@", "\t", "\r"))


def test_a_table_with_titles_that_would_be_run_is_read_back(tmp_path):
    line = dict(zip(COLUMNS, ("=cmd|x", "@key=-1", "accuracy", "-1.5", "", "1"), strict=True))
    write_csv(tmp_path / "t.csv", [line], COLUMNS)
    with (tmp_path / "t.csv").open(newline="") as stream:
        [raw] = csv.DictReader(stream)
    assert (raw["row"], raw["column"], raw["value"]) == ("'=cmd|x", "'@key=-1", "-1.5")
    assert read_csv(tmp_path / "t.csv").to_dict("records") == [
        line | {"value": -1.5, "std": None, "n": 1}
    ]


def test_a_comparison_runs_nothing_either(tmp_path):
    cell = Difference(("=t", "+r", "", "m"), "new", "", "", "-why")
    write_differences(tmp_path / "t.csv", [cell])
    line = (tmp_path / "t.csv").read_text().splitlines()[1]
    assert line == "'=t,'+r,,m,new,,,,'-why"
