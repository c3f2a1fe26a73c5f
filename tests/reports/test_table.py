"""Tables as drawn: panels, marks, failures, and plots that are written."""

from __future__ import annotations

import pytest

from reports import plots
from reports.table import Layout, best_rows, by_cell, legend, markdown, panels, published_text
from results.store import CSV_COLUMNS

COLUMNS = tuple(
    f"dataset={d} distribution={k}" for d in ("mnist", "cifar10", "cinic10") for k in ("iid", "niid1", "niid2", "niid3")
)


def layout(columns=COLUMNS, x_axis=""):
    return Layout(
        key="dlad/table2", title="Table II", caption="Accuracy", rows={"a": "Row A", "b": "Row B", "top": "Bound"},
        oracles=frozenset({"top"}), own="b", x_axis=x_axis, columns=columns, labels=("profile smoke (reduced)", "1 seed"),
    )  # fmt: skip


def line(row, column, value, published="", **more):
    difference = f"{float(value) - float(published):.4f}" if published and value else ""
    base = dict.fromkeys(CSV_COLUMNS, "")
    return {
        **base,
        "row": row,
        "column": column,
        "value": value,
        "published": published,
        "difference": difference,
        "status": "ok",
        **more,
    }


def test_many_columns_are_split_into_panels_by_all_keys_but_the_last():
    found = panels(layout())
    assert [p.title for p in found] == ["dataset mnist", "dataset cifar10", "dataset cinic10"]
    assert list(found[0].columns) == ["iid", "niid1", "niid2", "niid3"]


def test_panels_run_along_the_named_axis():
    columns = tuple(f"clients={n} model={m} d={d}" for d in "xyz" for m in ("r", "s") for n in (5, 10))
    found = panels(layout(columns, "clients"))
    assert len(found) == 6
    assert list(found[0].columns) == ["5", "10"]


def test_the_best_row_leaves_out_upper_bounds_and_failures():
    lines = [line("a", "x=1", "0.5"), line("b", "x=1", "0.6"), line("top", "x=1", "0.9")]
    assert best_rows(layout(), by_cell(lines), "x=1") == {"b"}
    lines[1]["status"] = "failed: no"
    assert best_rows(layout(), by_cell(lines), "x=1") == set()


def test_measured_stands_beside_published_with_the_difference():
    assert published_text(line("a", "x=1", "0.9812", "0.9820")) == "(0.9820, -0.0008)"
    assert published_text(line("a", "x=1", "0.9812")) == "(not printed)"
    assert published_text({**line("a", "x=1", ""), "value": "0,1", "published": "0,1", "difference": "same"}) == "(0,1, same)"


def test_markdown_shows_numbers_failures_claims_and_the_protocol():
    lines = [line("a", COLUMNS[0], "0.98", "0.95"), line("b", COLUMNS[0], "", status="failed: DivergedError: nan")]
    text = markdown(layout(), lines, [("it wins", "holds", "yes 3/3")], ["the card"])
    assert "0.9800 (0.9500, +0.0300)" in text
    assert "failed: b dataset=mnist distribution=iid: failed: DivergedError: nan" in text
    assert "| it wins | holds | yes 3/3 |" in text
    assert "the card" in text
    assert "profile smoke (reduced)" in text


def test_the_legend_explains_upper_bounds():
    assert any("upper bound" in note for note in legend(layout(), []))


@pytest.mark.parametrize("x_axis", ["", "clients"])
def test_plots_are_written_as_png(tmp_path, x_axis):
    columns = tuple(f"model={m} clients={n}" for m in ("r", "s", "t") for n in (5, 10, 20))
    lines = [line(r, c, "0.5", "0.6", std="0.01") for r in ("a", "b", "top") for c in columns]
    plots.table_plot(layout(columns, x_axis), lines, tmp_path / "t.png", "accuracy")
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_numbers_give_the_same_picture(tmp_path):
    lines = [line("a", COLUMNS[0], "0.5", "0.6")]
    for name in ("one.png", "two.png"):
        plots.table_plot(layout(), lines, tmp_path / name, "accuracy")
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
