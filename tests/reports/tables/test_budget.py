"""Budgets of rows, and which of them are not those of their family."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from fedtables.reports.tables.budget import (
    budget_rows,
    markdown_budget,
    terminal_budget,
    unequal_rows,
)
from fedtables.reports.tables.notes import legend
from fedtables.reports.tables.terminal import terminal_tables
from fedtables.results.record import FAILED
from tests.reports.drawn import layout, line, page_of, table_of
from tests.reports.written_results import record

X, Y = "test=x", "test=y"
ONE = layout((X, Y))


def run(row, column=X, local=1_000, server=0, sent=1_000_000, lineage=("a",), **more):
    """A run that has sent half of its bytes either way."""
    return record(
        row,
        column,
        0.5,
        local_samples=local,
        server_samples=server,
        lineage=lineage,
        bytes_up=sent // 2,
        bytes_down=sent // 2,
        **more,
    )


def derived(row="b", **more):
    return run(row, **{"lineage": ("mine", "a"), **more})


# -- what rows took --


def test_a_rows_budget_is_that_of_a_run_or_the_range_of_its_runs():
    records = [
        run("a", local=1_200, server=30, sent=2_500_000),
        run("a", Y, local=1_500, server=30, sent=2_500_000),
        run("b", local=7, seed=0, sent=0),
        run("b", local=9, seed=1, sent=0),
    ]
    assert budget_rows(ONE, records) == [
        ("Row A", "1,200 to 1,500", "30", "2.500"),
        ("Row B", "7 to 9", "0", "0.000"),
    ]


def test_samples_of_older_records_are_unknown():
    assert budget_rows(ONE, [run("a", local=None, server=None), run("a", Y)]) == [
        ("Row A", "unknown", "unknown", "1.000")
    ]


def test_failed_runs_and_rows_that_are_not_shown_have_no_budget():
    records = [run("a", status=FAILED), run("elsewhere"), run("b")]
    assert [row[0] for row in budget_rows(ONE, records)] == ["Row B"]


def test_a_table_for_which_nothing_was_trained_or_sent_has_none():
    assert budget_rows(ONE, [run("a", local=0, sent=0), run("b", local=None, sent=0)]) == []
    assert budget_rows(ONE, []) == []
    assert markdown_budget([]) == []


def test_a_budget_is_shown_in_terminal_and_markdown():
    records = [run("a", local=1_200)]
    rows = budget_rows(ONE, records)
    console = Console(file=io.StringIO(), width=80)
    console.print(terminal_budget(rows))
    for text in ("Budget of a run", "samples seen by clients", "1,200", "1.000"):
        assert text in console.file.getvalue()
    assert markdown_budget(rows)[0] == (
        "| | samples seen by clients | by the server | MB up and down |"
    )
    page = page_of(ONE, table_of([line("a", X, "0.5")]), records=records)
    assert "## Budget of a run\n\n| | samples" in page
    assert "| Row A | 1,200 | 0 | 1.000 |" in page
    assert "Budget" not in page_of(ONE, table_of([line("a", X, "0.5")]))


# -- families --


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, ""),
        ({"local": 1_009}, ""),
        ({"local": 1_020}, "samples seen by clients +2.0 %"),
        ({"local": 991}, ""),
        ({"local": 500}, "samples seen by clients -50.0 %"),
        ({"local": 34_000}, "samples seen by clients +3,300.0 %"),
        ({"server": 1_280}, "samples seen by the server 1,280 instead of none"),
        ({"sent": 1_500_000}, "bytes +50.0 %"),
        ({"sent": 0}, "bytes -100.0 %"),
        ({"local": 500, "sent": 0}, "samples seen by clients -50.0 %, bytes -100.0 %"),
        ({"local": None}, ""),
    ],
)
def test_a_row_whose_budget_is_not_its_familys_is_told_with_by_how_much(changes, text):
    expected = {"b": f"another budget than Row A: {text}"} if text else {}
    assert unequal_rows(ONE, [run("a"), derived(**changes)]) == expected


def test_budgets_are_compared_in_the_columns_and_seeds_that_both_have():
    records = [
        run("a"),
        run("a", seed=1, local=3_000),
        derived(seed=1, local=3_000),
        derived(column=Y),
    ]
    assert unequal_rows(ONE, records) == {}
    assert unequal_rows(ONE, [run("a"), derived(column=Y, local=1)]) == {}


def test_a_row_of_another_family_or_of_none_that_is_known_is_compared_with_none():
    assert unequal_rows(ONE, [run("a"), derived(lineage=("other",), local=1)]) == {}
    assert unequal_rows(ONE, [run("a"), derived(lineage=(), local=1)]) == {}
    assert unequal_rows(ONE, [run("a", lineage=()), derived(local=1)]) == {}
    assert unequal_rows(ONE, [run("a", status=FAILED), derived(local=1)]) == {}


def test_the_root_of_a_family_decides_not_the_method_between():
    records = [
        run("a"),
        run("top", lineage=("between", "a"), local=2_000),
        run("b", lineage=("mine", "between", "a"), local=2_000),
    ]
    assert list(unequal_rows(ONE, records)) == ["top", "b"]


def test_of_several_rows_of_the_root_the_papers_own_is_the_one_to_compare_with():
    records = [run("a"), run("b", local=2_000), derived("top", local=2_000)]
    assert ONE.own == "b"
    assert unequal_rows(ONE, records) == {
        "a": "another budget than Row B: samples seen by clients -50.0 %"
    }
    assert list(unequal_rows(replace(ONE, own=""), records)) == ["b", "top"]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"local": 600, "server": 410, "sent": 9_000_000}, ""),  # 1,010 in place of 1,000
        ({"local": 0, "server": 1_019}, ""),
        ({"local": 700, "server": 330}, "samples seen by clients and server +3.0 %"),
        ({"local": 970, "server": 0}, "samples seen by clients and server -3.0 %"),
        ({"local": 500, "server": None}, ""),
    ],
)
def test_where_a_table_has_one_budget_the_samples_of_all_together_are_compared(changes, text):
    config = {"budget.samples": 1_000}
    expected = {"b": f"another budget than Row A: {text}"} if text else {}
    records = [run("a", config=config), derived(config=config, **changes)]
    assert unequal_rows(ONE, records) == expected


def test_a_row_with_another_budget_is_marked_with_a_footnote():
    records = [run("a"), derived(local=3_000)]
    marked = replace(ONE, unequal=unequal_rows(ONE, records))
    lines = table_of([line("a", X, "0.5"), line("b", X, "0.6")])
    note = "‡ Row B: another budget than Row A: samples seen by clients +200.0 %"
    assert note in legend(marked, lines)
    page = page_of(marked, lines)
    assert "| Row B ‡ |" in page
    assert "| Row A |" in page
    assert f"- {note}" in page
    console = Console(file=io.StringIO(), width=160)
    console.print(terminal_tables(marked, lines)[0])
    assert "Row B ‡" in console.file.getvalue()
    assert [row[0] for row in budget_rows(marked, records)] == ["Row A", "Row B ‡"]
