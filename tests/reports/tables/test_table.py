"""Tables as drawn: panels, metrics, marks, units and failures."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from fedtables.reports.pages.latex import latex_table
from fedtables.reports.tables.notes import legend
from fedtables.reports.tables.table import (
    best_rows,
    blocks,
    measured_columns,
    measured_text,
    panels,
    published_text,
)
from fedtables.reports.tables.terminal import terminal_tables
from fedtables.reports.tables.units import scale_of
from tests.reports.drawn import COLUMNS, layout, line, page_of, table_of

FRACTION = scale_of("accuracy", "fraction")
TWO = [
    line("a", "test=x", "71.5", metric="dice"),
    line("a", "test=x", "12.5", metric="hd95"),
    line("b", "test=x", "70.25", metric="dice"),
    line("b", "test=x", "11.75", metric="hd95"),
    line("top", "test=x", "80.0", metric="dice"),
    line("top", "test=x", "9.0", metric="hd95"),
]


def terminal(drawn, lines):
    console = Console(file=io.StringIO(), width=160)
    for table in terminal_tables(drawn, table_of(lines)):
        console.print(table)
    return console.file.getvalue()


def rows_of(text):
    """The cells of Markdown rows, as lists."""
    return [
        [cell.strip() for cell in row.strip("|").split(" | ")]
        for row in text.splitlines()
        if row.startswith("|")
    ]


def test_many_columns_are_split_into_panels_by_all_keys_but_the_last():
    found = panels(COLUMNS, "")
    assert [p.title for p in found] == ["dataset mnist", "dataset cifar10", "dataset cinic10"]
    assert list(found[0].columns.values()) == ["iid", "niid1", "niid2", "niid3"]


def test_panels_run_along_the_named_axis():
    columns = tuple(
        f"clients={n} model={m} d={d}" for d in "xyz" for m in ("r", "s") for n in (5, 10)
    )
    by_number = panels(
        tuple(f"d={d} model={m} clients={n}" for d in "xyz" for m in "rs" for n in (5, 10)), ""
    )
    assert list(by_number[0].columns.values()) == [
        "clients 5",
        "clients 10",
    ]  # without an axis to name them
    found = panels(columns, "clients")
    assert len(found) == 6
    assert list(found[0].columns.values()) == ["5", "10"]
    assert len(panels(columns[:4], "clients")) == 2


def test_part_of_a_table_keeps_the_panels_of_the_table_in_print():
    part = ("train=a test=a class=x", "train=a test=b class=x", "train=a test=b class=y")
    found = panels(part, "", printed=9)
    assert [p.title for p in found] == ["train a, test a", "train a, test b"]
    assert [list(p.columns.values()) for p in found] == [["x"], ["x", "y"]]
    assert len(panels(part, "", printed=8)) == 1
    (one_key,) = panels(COLUMNS[::4], "", printed=12)
    assert list(one_key.columns.values()) == ["mnist", "cifar10", "cinic10"]


def test_headings_name_the_key_of_a_number_and_what_all_columns_share_is_the_title():
    (panel,) = panels(("dataset=cifar10 alpha=1", "dataset=cifar100 alpha=0.1"), "")
    assert (panel.title, list(panel.columns.values())) == (
        "",
        ["cifar10, alpha 1", "cifar100, alpha 0.1"],
    )
    (panel,) = panels(("train=a,b dp=yes", "train=a,b dp=no"), "")
    assert (panel.title, list(panel.columns.values())) == ("train a,b", ["dp yes", "dp no"])


def test_a_column_that_only_the_lines_have_is_appended():
    one = layout(("test=x", "test=y"))
    lines = [line("a", "test=x", "0.5"), line("a", "test=z", "0.6")]
    assert measured_columns(one, table_of(lines)) == ["test=x", "test=y", "test=z"]
    assert rows_of(page_of(one, table_of(lines)))[0] == ["", "x", "y", "z"]


def test_a_column_measured_only_with_additions_is_replaced_by_them_and_failures_stand_in_each():
    one = layout(("train=p", "train=q"))
    failed = line("b", "train=p", "", metric="", status="failed: no")
    lines = [line("a", "train=p test=x", "0.5"), line("a", "train=p test=y", "0.6"), failed]
    assert measured_columns(one, table_of(lines)) == ["train=q", "train=p test=x", "train=p test=y"]
    (block,) = blocks(one, table_of(lines))
    assert {column for row, column in block.cells if row == "b"} == {
        "train=p test=x",
        "train=p test=y",
    }


def test_a_column_that_only_other_metrics_have_is_left_out_of_a_metrics_table():
    one = layout(("test=x",))
    lines = [
        line("a", "test=x class=p", "71.5", metric="auc"),
        line("a", "test=x class=mean", "70.0", metric="mauc"),
        line("b", "test=x", "", metric="", status="failed: no"),
    ]
    auc, mauc = blocks(one, table_of(lines))
    assert [list(panel.columns) for panel in auc.panels] == [["test=x class=p"]]
    assert [list(panel.columns) for panel in mauc.panels] == [["test=x class=mean"]]
    assert {column for row, column in auc.cells if row == "b"} == {"test=x class=p"}


def test_texts_stand_in_a_table_as_they_are_and_none_is_the_best():
    one = layout(("test=x",))
    lines = table_of(
        [
            line("a", "test=x property=private", "yes", metric="property"),
            line("b", "test=x property=private", "no", metric="property"),
        ]
    )
    (block,) = blocks(one, lines)
    assert best_rows(one, block, "test=x property=private") == set()
    assert [row[1] for row in rows_of(page_of(one, lines))[2:4]] == ["yes", "no"]


@pytest.mark.parametrize(
    ("metric", "values", "best"),
    [
        ("dice", [("70.0", "1.0"), ("71.5", "9.0")], {"b"}),  # its own spread does not matter
        ("dice", [("70.0", "1.5"), ("71.5", "")], set()),  # 70 + 1.5 reaches 71.5
        ("dice", [("71.5", ""), ("71.5", "")], set()),
        ("hd95", [("9.0", "1.0"), ("7.5", "1.0")], {"b"}),
        ("hd95", [("9.0", "1.6"), ("7.5", "1.0")], set()),  # 9 - 1.6 is less than 7.5
    ],
)
def test_no_row_is_the_best_whose_value_anothers_spread_reaches(metric, values, best):
    one = layout(("x=1",), unit="percent")
    lines = [
        line(row, "x=1", value, std=std, metric=metric)
        for row, (value, std) in zip("ab", values, strict=True)
    ]
    lines.append(line("top", "x=1", "99.0", std="50.0", metric=metric))
    (block,) = blocks(one, table_of(lines))
    assert best_rows(one, block, "x=1") == best


def test_numbers_that_print_took_otherwise_stand_beside_it_without_a_difference():
    one = replace(layout(("test=x",)), unlike={"dice": "by another network"})
    lines = [line("a", "test=x", "0.5", "0.6", metric=metric) for metric in ("dice", "ssim")]
    dice, ssim = blocks(one, table_of(lines))
    assert published_text(dice.cells["a", "test=x"], dice.scale) == "(0.6000)"
    assert published_text(ssim.cells["a", "test=x"], ssim.scale) == "(0.6000, -0.1000)"
    assert "Dice: not compared with print, because it is by another network" in legend(
        one, table_of(lines)
    )


BEST_OF, LAST = {"statistic": "best of 9 epochs"}, {"statistic": "after the last of 9 epochs"}


def best_of_a_column(*lines):
    one = replace(layout(("x=1",)), rows={key: key for key in ("a", "b", "c", "top")})
    (block,) = blocks(one, table_of(lines))
    return best_rows(one, block, "x=1")


def test_a_number_that_was_read_off_at_its_best_is_not_the_best_beside_others():
    lines = [
        line("a", "x=1", "0.5", **LAST),
        line("b", "x=1", "0.6", **LAST),
        line("c", "x=1", "0.9", **BEST_OF),
    ]
    assert best_of_a_column(*lines) == {"b"}
    assert best_of_a_column(*lines[1:]) == set()  # one row alone is no best


def test_no_row_is_the_best_of_rows_with_different_seeds():
    three, six = {"seeds": "0 1 2"}, {"seeds": "0 1 2 3 4 5"}
    lines = [line("a", "x=1", "0.5", **three), line("b", "x=1", "0.6", **six)]
    assert best_of_a_column(*lines) == set()
    assert best_of_a_column(lines[1], line("c", "x=1", "0.5", **six)) == {"b"}


FEW, ALL = {"defined": "112", "of": "610"}, {"defined": "610", "of": "610"}


def test_a_mean_over_fewer_values_than_anothers_is_not_the_best():
    lines = [
        line("a", "x=1", "0.5", **ALL),
        line("b", "x=1", "0.6", **ALL),
        line("c", "x=1", "0.9", **FEW),
    ]
    assert best_of_a_column(*lines) == {"b"}
    assert best_of_a_column(*lines[1:]) == set()
    assert best_of_a_column(line("a", "x=1", "0.5"), *lines[1:]) == {"b"}  # an older CSV's counts
    # Where the data define as many for every row, as classes of a test set, they are compared.
    assert best_of_a_column(line("a", "x=1", "0.5", **FEW), lines[2]) == {"c"}


def test_a_mean_that_leaves_out_values_says_of_how_many_it_is_and_the_legend_what_that_means():
    few = line("a", "x=1", "0.5", std="0.1", settled="no", **FEW)
    lines = [few, line("b", "x=1", "0.6", **ALL)]
    texts = [measured_text(one, FRACTION) for one in lines]
    assert texts == ["0.5000 ± 0.1000 (112 of 610) §", "0.6000"]
    one = replace(layout(("x=1",)), rows={"a": "A", "b": "B"})
    assert any(note.startswith("(n of m): the mean") for note in legend(one, table_of(lines)))
    assert not any(note.startswith("(n of m)") for note in legend(one, table_of(lines[1:])))
    assert "0.5000 ± 0.1000 (112 of 610) §" in page_of(one, table_of(lines))
    for table in (terminal(one, lines), latex_table(one, table_of(lines))):
        assert "(112 of 610)" in table


def test_a_table_of_two_metrics_is_drawn_as_two_tables_each_with_its_title_unit_and_best():
    one = layout(("test=x",), unit="percent")
    text = page_of(one, table_of(TWO))
    dice, hd95 = text.split("## HD95 (pixel), lower is better")
    assert "## Dice (%)" in dice
    assert [row[1] for row in rows_of(dice)[2:]] == ["**71.50**", "70.25", "80.00"]
    assert [row[1].split()[0] for row in rows_of(hd95)[2:]] == ["12.50", "**11.75**", "9.00"]
    shown = terminal(one, TWO)
    assert (
        shown.index("Dice (%)")
        < shown.index("71.50")
        < shown.index("HD95 (pixel)")
        < shown.index("11.75")
    )


def test_what_is_not_printed_says_so_where_other_numbers_of_the_table_are():
    lines = table_of([line("a", "x=1", "0.9812", "0.9820"), line("b", "x=1", "0.9812")])
    text = page_of(layout(("x=1",)), lines)
    assert "0.9812 (not printed)" in text
    assert "measured (published" in text
    alone = page_of(layout(("x=1",)), table_of([line("b", "x=1", "0.9812")]))
    assert "printed" not in alone
    assert "(published" not in alone


def test_measured_stands_beside_published_with_the_difference():
    (block,) = blocks(
        layout(("x=1",)),
        table_of([line("a", "x=1", "0.9812", "0.9820"), line("b", "x=1", "0.9812", std="0.01")]),
    )
    assert published_text(block.cells["a", "x=1"], FRACTION) == "(0.9820, -0.0008)"
    assert published_text(block.cells["b", "x=1"], FRACTION) == "(not printed)"
    assert (
        published_text({**block.cells["b", "x=1"], "metric": "", "value": None}, FRACTION) == ""
    )  # failed: of which metric?
    assert measured_text(block.cells["b", "x=1"], FRACTION) == "0.9812 ± 0.0100"
    classes = {
        **line("a", "x=1", ""),
        "value": "0,1",
        "published": "0,1",
        "published_std": None,
        "difference": "same",
    }
    assert published_text(classes, scale_of("classes", "")) == "(0,1, same)"


def test_the_printed_spread_stands_beside_the_printed_value_also_of_a_failed_cell():
    column = "dataset=cifar10 alpha=1"
    one = replace(
        layout((column,), unit="percent", key="fediod/table1"),
        rows={"fedavg": "FedAvg", "fediod": "FedIOD"},
    )
    failed = line("fedavg", column, "", metric="", status="failed: no")
    lines = [line("fediod", column, "80.0", "82.78", std="0.5"), failed]
    assert [row[1] for row in rows_of(page_of(one, table_of(lines)))[2:]] == [
        "failed (78.57 ± 0.22)",
        "80.00 ± 0.50 (82.78 ± 0.18, -2.78)",
    ]
    assert "(82.78 ± 0.18, -2.78)" in terminal(one, lines)


def test_the_terminal_shows_brackets_in_titles():
    one = replace(layout(("test=[x]",)), rows={"a": "Row A [released]"})
    shown = terminal(one, [line("a", "test=[x]", "0.5")])
    assert "Row A [released]" in shown
    assert "[x]" in shown
