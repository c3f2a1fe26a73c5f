"""Plots: the axes of metrics and units, and pictures that are written."""

from __future__ import annotations

import pytest

from reports.drawing import plots
from tests.reports.drawn import COLUMNS, layout, line, visible


def test_percent_is_on_the_axis_of_a_table_in_percent(drawn, tmp_path):
    lines = [line("a", c, "70.0", "75.0") for c in ("test=x", "test=y")] + [
        line("b", "test=x", "30.0")
    ]
    plots.table_plot(layout(("test=x", "test=y"), unit="percent"), lines, tmp_path / "t.png")
    (axis,) = visible(drawn[0])
    assert (axis.get_ylabel(), axis.get_ylim()) == ("Accuracy (%)", (0, 102))


def test_each_metric_has_its_own_axes(drawn, tmp_path):
    columns = ("test=x", "test=y")
    lines = [
        line(row, c, value, metric=metric)
        for row in ("a", "b")
        for c in columns
        for metric, value in (("dice", "70.0"), ("hd95", "12.0"))
    ]
    plots.table_plot(layout(columns, unit="percent"), lines, tmp_path / "t.png")
    assert [axis.get_ylabel() for axis in visible(drawn[0])] == ["Dice (%)", "HD95 (pixel)"]


def test_many_long_headings_are_slanted_and_the_picture_stays_narrow(drawn, tmp_path):
    for length, slanted in ((5, False), (25, True)):
        columns = tuple(f"test={letter * length}" for letter in "pqrstuvw")
        plots.table_plot(
            layout(columns), [line("a", column, "0.5") for column in columns], tmp_path / "t.png"
        )
        (axis,) = visible(drawn[-1])
        assert [label.get_rotation() for label in axis.get_xticklabels()] == [
            35.0 if slanted else 0.0
        ] * 8
        assert drawn[-1].get_figwidth() < 8


def test_texts_are_not_plotted(drawn, tmp_path):
    lines = [
        line("a", "test=x", "71.5", metric="dice"),
        line("a", "test=x property=private", "yes", metric="property"),
    ]
    plots.table_plot(layout(("test=x",)), lines, tmp_path / "t.png")
    assert len(visible(drawn[-1])) == 1
    before = len(drawn)
    plots.table_plot(layout(("test=x",)), lines[1:], tmp_path / "u.png")
    assert len(drawn) == before


def test_metrics_with_several_panels_are_rows_of_panels(drawn, tmp_path):
    lines = [line("a", c, "0.7", metric=metric) for c in COLUMNS for metric in ("dice", "ssim")]
    plots.table_plot(layout(), lines, tmp_path / "t.png")
    axes = visible(drawn[0])
    assert [axis.get_ylabel() for axis in axes] == ["Dice", "", "", "SSIM", "", ""]
    assert [axis.get_title() for axis in axes[:3]] == [
        "dataset mnist",
        "dataset cifar10",
        "dataset cinic10",
    ]


def test_a_table_of_one_column_names_its_rows_at_the_vertical_axis(drawn, tmp_path):
    lines = [
        line(row, "test=x", value) for row, value in (("a", "0.2"), ("b", "0.7"), ("top", "0.8"))
    ]
    plots.table_plot(layout(("test=x",)), lines, tmp_path / "t.png")
    (axis,) = visible(drawn[0])
    assert [label.get_text() for label in axis.get_yticklabels()] == ["Row A", "Row B", "Bound †"]
    assert (axis.get_xlabel(), axis.get_xlim()) == ("Accuracy", (0, 1.02))


def test_a_picture_of_a_part_of_a_table_has_no_place_for_columns_that_were_not_run(drawn, tmp_path):
    columns = tuple(
        f"share={share} data={data}" for share in ("1", "5", "10") for data in ("x", "y", "z")
    )
    lines = [line(row, f"share=1 data={data}", "0.5") for row in ("a", "b") for data in ("x", "y")]
    lines += [line(row, f"share=5 data={data}", "0.5") for row in ("a", "b") for data in ("x", "y")]
    plots.table_plot(layout(columns), lines, tmp_path / "t.png")
    first, second = visible(drawn[0])
    assert [label.get_text() for label in first.get_xticklabels()] == ["x", "y"]
    assert second.get_title() == "share 5"


def test_a_panel_of_one_column_says_which(drawn, tmp_path):
    columns = tuple(
        f"share={share} data={data}" for share in ("1", "5", "10") for data in ("x", "y", "z")
    )
    lines = [
        line(row, f"share={share} data=x", "0.5") for row in ("a", "b") for share in ("1", "5")
    ]
    plots.table_plot(layout(columns), lines, tmp_path / "t.png")
    assert [axis.get_title() for axis in visible(drawn[0])] == ["share 1, x", "share 5, x"]


@pytest.mark.parametrize("columns", [("test=x",), ("test=x", "test=y")])
def test_there_are_no_bars_on_an_axis_that_does_not_begin_at_zero(drawn, tmp_path, columns):
    for low in ("20.0", "99.4"):
        lines = [line(row, c, value) for c in columns for row, value in (("a", low), ("b", "99.6"))]
        plots.table_plot(layout(columns, unit="percent"), lines, tmp_path / "t.png")
    assert [bool(visible(figure)[0].patches) for figure in drawn] == [True, False]


@pytest.mark.parametrize("x_axis", ["", "clients"])
def test_plots_are_written_as_png(tmp_path, x_axis):
    columns = tuple(f"model={m} clients={n}" for m in ("r", "s", "t") for n in (5, 10, 20))
    lines = [line(r, c, "0.5", "0.6", std="0.01") for r in ("a", "b", "top") for c in columns]
    plots.table_plot(layout(columns, x_axis), lines, tmp_path / "t.png")
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_numbers_give_the_same_picture(tmp_path):
    lines = [line("a", COLUMNS[0], "0.5", "0.6")]
    for name in ("one.png", "two.png"):
        plots.table_plot(layout(), lines, tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
