"""What a reader is told below a table."""

from dataclasses import replace

from fedtables.reports.tables.notes import legend
from tests.reports.drawn import layout, line, page_of, table_of

BEST_OF, LAST = {"statistic": "best of 9 epochs"}, {"statistic": "after the last of 9 epochs"}
ALL = {"defined": "610", "of": "610"}


def test_the_legend_says_what_is_bold_and_that_upper_bounds_are_not():
    bounds = "upper bounds † left out"
    assert bounds in legend(layout(), table_of([]))[0]
    assert bounds not in legend(replace(layout(), oracles=frozenset()), table_of([]))[0]


def test_of_a_distance_that_is_older_than_the_counts_the_legend_says_what_it_lacks():
    one = replace(layout(("x=1",)), rows={"a": "A"})
    old, new = (line("a", "x=1", "9.5", metric="hd95", **counts) for counts in ({}, ALL))
    assert any("is not recorded" in note for note in legend(one, table_of([old])))
    assert not any("is not recorded" in note for note in legend(one, table_of([new])))


def test_the_legend_says_once_how_every_number_was_made_if_all_were_made_alike():
    one = replace(layout(("x=1", "x=2")), rows={"a": "Row A", "b": "Row B"})
    alike = table_of(
        [line(row, column, "0.5", **LAST) for row in "ab" for column in ("x=1", "x=2")]
    )
    assert legend(one, alike)[1:] == ["each number: after the last of 9 epochs"]
    assert "- each number: after the last of 9 epochs" in page_of(one, alike).splitlines()
    old = table_of([line("a", "x=1", "0.5")])  # of before there was a statistic
    assert len(legend(one, old)) == len(legend(one, old.drop(columns="statistic"))) == 1


def test_the_legend_names_columns_where_all_rows_were_made_alike_in_each():
    one = replace(layout(("x=1", "x=2")), rows={"a": "Row A", "b": "Row B"})
    of = {"x=1": LAST, "x=2": BEST_OF}
    lines = [line(row, column, "0.5", **how) for row in "ab" for column, how in of.items()]
    assert legend(one, table_of(lines))[1:] == [
        "x 1: after the last of 9 epochs",
        "x 2: best of 9 epochs",
    ]


def test_the_legend_says_by_rows_how_numbers_were_made_if_they_were_made_differently():
    one = replace(layout(("x=1", "x=2")), rows={"a": "Row A", "b": "Row B", "c": "Row C"})
    lines = [
        *(line(row, column, "0.5", **LAST) for row in "ab" for column in ("x=1", "x=2")),
        line("c", "x=1", "0.5", **BEST_OF),
        line("c", "x=2", "", metric="", status="failed: no", statistic="never reached"),
    ]
    assert legend(one, table_of(lines))[1:] == [
        "Row A, Row B: after the last of 9 epochs",
        "Row C: best of 9 epochs",
        "failed: c x=2: failed: no",
    ]
