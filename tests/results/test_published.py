"""The published numbers: all there, and read as printed."""

import hashlib
import re

import pytest

from fedtables.results import published
from fedtables.results.command_line import suite_version
from fedtables.results.published import (
    claims,
    format_column,
    papers,
    parse_column,
    published_table,
    tables,
)
from fedtables.results.sourcecode import ROOT

TABLES = [f"{paper}/{table}" for paper in papers() for table in tables(paper)]


def test_the_four_papers_have_25_tables():
    assert {paper: len(tables(paper)) for paper in papers()} == {
        "dlad": 4,
        "fedad": 8,
        "fediod": 9,
        "fedsa": 4,
    }


@pytest.mark.parametrize(
    ("paper", "numbers", "dashes"),
    [("dlad", 235, 40), ("fedad", 410, 90), ("fediod", 262, 0), ("fedsa", 308, 16)],
)
def test_a_paper_has_as_many_numbers_and_dashes_as_its_readme_counts(paper, numbers, dashes):
    values = [cell.value for table in tables(paper) for cell in published_table(f"{paper}/{table}")]
    assert (sum(v is not None for v in values), values.count(None)) == (numbers, dashes)


@pytest.mark.parametrize("table", TABLES)
def test_no_cell_is_listed_twice(table):
    keys = [(cell.row, cell.column, cell.metric) for cell in published_table(table)]
    assert len(set(keys)) == len(keys) > 0


@pytest.mark.parametrize("table", TABLES)
def test_every_column_is_written_as_it_is_parsed(table):
    for cell in published_table(table):
        assert format_column(parse_column(cell.column)) == cell.column


def test_only_the_class_lists_of_dlad_are_text():
    text = {
        table for table in TABLES for cell in published_table(table) if isinstance(cell.value, str)
    }
    assert text == {"dlad/table1"}


def test_a_printed_deviation_and_count_are_read_as_numbers():
    cells = published_table("fediod/table1")
    assert all(isinstance(cell.std, float) and cell.n == 3 for cell in cells)
    assert len(cells) == 36


def test_the_papers_make_101_claims_with_unique_names():
    every = [claim.id for paper in papers() for claim in claims(paper)]
    assert len(every) == len(set(every)) == 101


def test_parse_column_keeps_further_equals_signs_in_the_value():
    assert parse_column("a=b=c") == {"a": "b=c"}


def test_a_dash_is_none_an_infinity_is_a_number(tmp_path, monkeypatch):
    monkeypatch.setattr(published, "PUBLISHED", tmp_path)
    published_table.cache_clear()
    (tmp_path / "p").mkdir()
    lines = "row,column,metric,value,std,n,note\nr,c=1,m,,,,\nr,c=2,m,inf,0.5,3,a; unit=dB\n"
    (tmp_path / "p" / "table1.csv").write_text(lines)
    digest = hashlib.sha256(lines.encode()).hexdigest()
    (tmp_path / "p" / "SHA256SUMS").write_text(f"{digest}  table1.csv\n")
    dash, infinite = published_table("p/table1")
    published_table.cache_clear()
    assert (dash.value, dash.std, dash.n) == (None, None, None)
    assert (infinite.value, infinite.std, infinite.n) == (float("inf"), 0.5, 3)


def test_what_is_to_be_cited_is_the_suite_as_it_is_and_the_papers_as_they_are_named():
    page = (ROOT / "results/published/README.md").read_text()
    cited = page.partition("```bibtex")[2].partition("```")[0]
    titles = re.findall(r"\n  title +=\s+\{(.*)\}", cited)
    assert titles[0] in (ROOT / "CITATION.cff").read_text()
    assert f"version = {{{suite_version().split()[1]}}}" in cited
    assert re.findall(r"@\w+\{(\w+),", cited) == ["fedtables", "dlad", "fedsa", "fedad", "fediod"]
    for paper, title in zip(("dlad", "fedsa", "fedad", "fediod"), titles[1:], strict=True):
        source = (ROOT / "results/published" / paper / "README.md").read_text()
        assert title in source
