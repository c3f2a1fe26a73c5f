"""Plots: the axes of metrics and units, and pictures that are written."""

from dataclasses import replace

import pytest

from fedtables.reports.drawing import plots
from fedtables.reports.drawing.frames import panel_names
from fedtables.reports.tables.table import Panel
from tests.reports.drawn import COLUMNS, layout, line, shown, visible


def test_metrics_with_several_panels_are_rows_of_panels(drawn, tmp_path):
    lines = [line("a", c, "0.7", metric=metric) for c in COLUMNS for metric in ("dice", "ssim")]
    plots.table_plot(shown(layout(), lines), tmp_path / "t.png")
    axes = visible(drawn[0])
    assert [axis.get_ylabel() for axis in axes] == ["Dice", "", "", "SSIM", "", ""]
    assert [axis.get_title() for axis in axes[:3]] == [
        "mnist",
        "cifar10",
        "cinic10",
    ]


def test_a_table_of_one_column_names_its_rows_at_the_vertical_axis(drawn, tmp_path):
    lines = [
        line(row, "test=x", value) for row, value in (("a", "0.2"), ("b", "0.7"), ("top", "0.8"))
    ]
    plots.table_plot(shown(layout(("test=x",)), lines), tmp_path / "t.png")
    (axis,) = visible(drawn[0])
    assert [label.get_text() for label in axis.get_yticklabels()] == ["Row A", "Row B", "Bound †"]
    assert (axis.get_xlabel(), axis.get_xlim()) == ("Accuracy", (0, 1.02))


def test_a_picture_of_a_part_of_a_table_has_no_place_for_columns_that_were_not_run(drawn, tmp_path):
    columns = tuple(
        f"share={share} data={data}" for share in ("1", "5", "10") for data in ("x", "y", "z")
    )
    lines = [line(row, f"share=1 data={data}", "0.5") for row in ("a", "b") for data in ("x", "y")]
    lines += [line(row, f"share=5 data={data}", "0.5") for row in ("a", "b") for data in ("x", "y")]
    plots.table_plot(shown(layout(columns), lines), tmp_path / "t.png")
    first, second = visible(drawn[0])
    assert [label.get_text() for label in first.get_xticklabels()] == ["x", "y"]
    assert second.get_title() == "share 5"


@pytest.mark.parametrize("columns", [("test=x",), ("test=x", "test=y")])
def test_there_are_no_bars_on_an_axis_that_does_not_begin_at_zero(drawn, tmp_path, columns):
    for low in ("20.0", "99.4"):
        lines = [line(row, c, value) for c in columns for row, value in (("a", low), ("b", "99.6"))]
        plots.table_plot(shown(layout(columns, unit="percent"), lines), tmp_path / "t.png")
    assert [bool(visible(figure)[0].patches) for figure in drawn] == [True, False]


def labels(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_an_auc_is_drawn_from_chance_and_less_hangs_below(drawn, tmp_path):
    lines = [
        line(row, c, value, metric="auc")
        for c in ("test=x", "test=y")
        for row, value in (("a", "45.0"), ("b", "90.0"))
    ]
    plots.table_plot(shown(layout(("test=x", "test=y"), unit="percent"), lines), tmp_path / "t.png")
    (axis,) = visible(drawn[0])
    assert [(bar.get_y(), bar.get_height()) for bar in axis.patches] == [(50, -5)] * 2 + [
        (50, 40)
    ] * 2
    assert {tuple(guess.get_ydata()) for guess in axis.lines} == {(50, 50)}
    assert labels(drawn[0]) == ["Row A", "Row B", "chance"]
    assert axis.get_ylim()[0] < 45


def test_a_column_has_the_chance_of_its_own_classes(drawn, tmp_path):
    columns = ("test=x", "test=y")
    lines = [line(row, c, "0.5") for c in columns for row in ("a", "b")]
    known = replace(layout(columns), chance={"test=x": 0.1, "test=y": 0.01})
    plots.table_plot(shown(known, lines), tmp_path / "t.png")
    (axis,) = visible(drawn[0])
    assert [guess.get_ydata()[0] for guess in axis.lines] == [0.1, 0.01]


@pytest.mark.parametrize("columns", [("test=x",), ("test=x", "test=y")])
def test_numbers_that_print_took_otherwise_are_not_drawn(drawn, tmp_path, columns):
    lines = [line(row, c, "0.5", "0.9") for c in columns for row in ("a", "b")]
    for unlike in ({}, {"accuracy": "by another network"}):
        plots.table_plot(shown(replace(layout(columns), unlike=unlike), lines), tmp_path / "t.png")
    assert ["published" in labels(figure) for figure in drawn] == [True, False]


def test_a_group_has_no_empty_places(drawn, tmp_path):
    lines = [line("a", "test=x", "0.5"), line("b", "test=x", "0.6"), line("b", "test=y", "0.7")]
    plots.table_plot(shown(layout(("test=x", "test=y", "test=z")), lines), tmp_path / "t.png")
    (axis,) = visible(drawn[0])
    assert [label.get_text() for label in axis.get_xticklabels()] == ["x", "y"]
    places = [bar.get_x() + bar.get_width() / 2 for bar in axis.patches]
    assert places == pytest.approx([-0.21, 0.21, 1])  # half of 0.84 / 2 to either side; alone


def test_counts_are_not_drawn_beside_what_is_measured(drawn, tmp_path):
    lines = [
        line(row, "test=x", value, metric=metric)
        for row in ("a", "b")
        for metric, value in (("mauc", "0.7"), ("num-classes", "6.0"))
    ]
    plots.table_plot(shown(layout(("test=x",)), lines), tmp_path / "t.png")
    assert [axis.get_xlabel() for axis in visible(drawn[0])] == ["Mean AUC"]


def test_a_row_without_a_number_in_a_panel_has_a_dash_as_in_the_table(drawn, tmp_path):
    columns = tuple(f"share={share} data=x" for share in range(9))
    lines = [line("a", c, "0.5") for c in columns] + [line("b", columns[0], "0.5")]
    plots.table_plot(shown(layout(columns), lines), tmp_path / "t.png")
    axes = visible(drawn[0])
    assert [[text.get_text() for text in axis.texts] for axis in axes] == [[]] + [["–"]] * 8


def test_a_column_without_a_number_on_a_numeric_axis_is_a_level(drawn, tmp_path):
    columns = ("size=none", "size=10", "size=20")
    lines = [line("top", "size=none", "0.8")] + [line("a", c, "0.5") for c in columns[1:]]
    plots.table_plot(shown(layout(columns, "size"), lines), tmp_path / "t.png")
    (axis,) = visible(drawn[0])
    assert [label.get_text() for label in axis.get_xticklabels()] == ["10", "20"]
    levels = [drawn_line for drawn_line in axis.lines if set(drawn_line.get_ydata()) == {0.8}]
    assert [level.get_label() for level in levels] == ["Bound †"]


WAYS = pytest.mark.parametrize(
    ("columns", "x_axis"),
    [(("size=10", "size=20"), ""), (("size=10", "size=20"), "size"), (("size=10",), "")],
    ids=["bars", "lines", "rows"],
)


@WAYS
def test_marks_of_runs_cut_short_lie_above_all_that_is_drawn(drawn, tmp_path, columns, x_axis):
    lines = [
        line(row, c, "0.5", "0.6", std="0.1", settled=settled)
        for c in columns
        for row, settled in (("a", "no"), ("b", "yes"))
    ]
    plots.table_plot(shown(layout(columns, x_axis), lines), tmp_path / "t.png")
    (axis,) = visible(drawn[0])
    highest = max(artist.get_zorder() for artist in (*axis.lines, *axis.collections, *axis.patches))
    marks = [mark for mark in axis.lines if mark.get_label() == "cut short"]
    assert [mark.get_zorder() for mark in marks] == [highest]
    assert len([mark for mark in axis.lines if mark.get_zorder() == highest]) == 2  # and an edge


@WAYS
def test_a_mean_that_leaves_out_values_says_of_how_many_it_is(drawn, tmp_path, columns, x_axis):
    lines = [
        line(row, c, "0.5", defined=defined, of=610)
        for c in columns
        for row, defined in (("a", 112), ("b", 610))
    ]
    plots.table_plot(shown(layout(columns, x_axis), lines), tmp_path / "t.png")
    (axis,) = visible(drawn[0])
    notes = [text.get_text() for text in axis.texts]
    assert notes == ["112 of 610"] * len(columns)


def test_values_without_bounds_that_are_far_apart_are_points_on_a_logarithmic_axis(drawn, tmp_path):
    columns = ("test=x", "test=y")
    lines = [
        line(row, c, value, metric="fid")
        for c in columns
        for row, value in (("a", "2.0"), ("b", "900.0"))
    ]
    plots.table_plot(shown(layout(columns), lines), tmp_path / "t.png")
    (axis,) = visible(drawn[0])
    assert (axis.get_yscale(), len(axis.patches)) == ("log", 0)


def test_a_line_has_its_printed_values_and_its_level_at_infinity(drawn, tmp_path):
    columns = ("size=1", "size=10", "size=100", "size=inf")
    lines = [line("a", c, "0.5", "0.6", std="0.1") for c in columns]
    plots.table_plot(shown(layout(columns, "size"), lines), tmp_path / "t.png")
    (axis,) = visible(drawn[0])
    assert axis.get_xscale() == "log"
    assert set(labels(drawn[0])) == {"Row A", "size = inf", "published"}
    printed = [one for one in axis.lines if one.get_marker() == "D" and len(one.get_xdata())]
    assert [list(one.get_xdata()) for one in printed] == [[1, 10, 100, 100]]


def test_panels_are_named_by_what_tells_them_apart_with_keys_where_values_could_be_mistaken():
    two = {"c": "c", "d": "d"}
    sites = [Panel({"train": a, "test": b}, two) for a, b in ("xx", "xy", "yx")]
    assert panel_names(sites)[0] == ["train x, test x", "train x, test y", "train y, test x"]
    crossed = [Panel({"data": d, "clients": n}, two) for d in "xy" for n in "35"]
    assert panel_names([*crossed, Panel({}, two)])[0][::4] == ["x, clients 3", ""]
    assert panel_names(crossed[:2]) == (["clients 3", "clients 5"], "x")
    assert panel_names([Panel({"train": "x"}, {"train=x test=y": "y"})]) == (["x, y"], "")
