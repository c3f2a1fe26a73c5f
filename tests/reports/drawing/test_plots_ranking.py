"""Pictures of a ranking, by what their axes hold: ranks, planes of a cost, and a panel a method."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reports.drawing.figures import Texts
from reports.drawing.palette import Look
from reports.drawing.plots_ranking import GREY, Plane, front_plot, parallel_plot, rank_plot
from reports.tables.ranking import spots

LOOKS = {name: Look(colour, "s", "") for name, colour in (("a", "#112233"), ("b", "#445566"))}
TITLES = {"a": "A", "b": "B"}


def plane(*places, **more):
    return Plane("x", "MB", "Accuracy", spots(places), **more)


def texts(axis):
    return [text.get_text().strip() for text in axis.texts]


def straight(axis, height):
    """Ends of the lines that run along one height."""
    lines = [line.get_xydata() for line in axis.lines]
    return [tuple(xy[:, 0]) for xy in lines if len(xy) == 2 and set(xy[:, 1]) == {height}]


def test_ranks_stand_at_their_places_and_a_bar_joins_those_that_are_not_told_apart(drawn, tmp_path):
    rank_plot({"c": 3.0, "a": 1.2, "b": 1.8}, 1.0, tmp_path / "t.png", Texts())
    (axis,) = drawn[0].axes
    assert texts(axis) == ["critical difference 1.00", "a  1.20", "b  1.80", "3.00  c"]
    top = axis.get_ylim()[1]
    assert straight(axis, top - 0.6) == [(1.0, 2.0)]
    # From 1.2 to 1.8, a little longer at either end; c is 1.2 from b.
    assert straight(axis, top - 1.5) == [pytest.approx((1.15, 1.85))]
    ends = {float(line.get_xdata()[0]) for line in axis.lines if len(line.get_xdata()) == 3}
    assert ends == {1.2, 1.8, 3.0}


def test_a_difference_that_is_longer_than_the_axis_is_said_to_be_and_an_infinite_one_not_drawn(
    drawn, tmp_path
):
    ranks = {"a": 1.0, "b": 2.0}
    rank_plot(ranks, 5.0, tmp_path / "t.png", Texts())
    rank_plot(ranks, math.inf, tmp_path / "t.png", Texts())
    long, infinite = (figure.axes[0] for figure in drawn)
    assert texts(long)[0] == "critical difference 5.00, longer than the axis"
    assert straight(long, long.get_ylim()[1] - 0.6) == [(1.0, 2.0)]
    assert texts(infinite) == ["a  1.00", "2.00  b"]
    assert straight(infinite, infinite.get_ylim()[1] - 1.5) == [pytest.approx((0.95, 2.05))]


@pytest.mark.parametrize(
    ("short", "gain", "entries"),
    [(True, 50.0, ["A", "B", "cut short"]), (False, 50.0, ["A", "B"]), (True, math.nan, ["B"])],
)
def test_the_legend_says_what_hollow_points_are_where_there_are_any(
    drawn, tmp_path, short, gain, entries
):
    one = plane(("a", 1.0, gain, short), ("b", 2.0, 60.0, False))
    front_plot([one], TITLES, LOOKS, tmp_path / "t.png", Texts())
    (legend,) = drawn[0].legends
    assert [text.get_text() for text in legend.get_texts()] == entries


@pytest.mark.parametrize(("least", "label"), [(0.0, "MB; 0 at the left end"), (1.0, "MB")])
def test_the_axis_says_where_what_costs_nothing_stands(drawn, tmp_path, least, label):
    one = plane(("a", least, 50.0, False), ("b", 2.0, 60.0, False))
    front_plot([one], TITLES, LOOKS, tmp_path / "t.png", Texts())
    (axis,) = drawn[0].axes
    assert axis.get_xlabel() == label


def test_the_line_joins_what_is_on_the_front_and_few_costs_are_named_on_their_axis(drawn, tmp_path):
    places = [("a", 1, 50, False), ("b", 1, 40, False), ("b", 4, 70, False), ("a", 4, 60, False)]
    one = plane(*places, ticks=(1, 4))
    front_plot([one], TITLES, LOOKS, tmp_path / "t.png", Texts())
    (axis,) = drawn[0].axes
    front, *points = axis.lines
    assert front.get_xydata().tolist() == [[1, 50], [4, 70]]
    assert [tuple(point.get_xydata()[0]) for point in points] == [
        (cost, gain) for _, cost, gain, _ in places
    ]
    assert [point.get_markeredgecolor() for point in points] == [
        LOOKS[row].colour for row, *_ in places
    ]
    assert [label.get_text() for label in axis.get_xticklabels()] == ["1", "4"]


def test_a_panel_has_its_method_in_colour_and_the_others_in_grey(drawn, tmp_path):
    values = {"a": [0.0, 1.0, 0.5], "b": [1.0, math.nan, 0.0], "c": [0.2, 0.4, 0.6]}
    values["d"] = values["c"]
    looks = {title: Look(f"#00000{number}", "s", "") for number, title in enumerate(values)}
    names = ["accuracy", "MB up", "memory"]
    parallel_plot(values, looks, names, tmp_path / "t.png", Texts())
    panels = drawn[0].axes
    assert [panel.get_title() for panel in panels] == list(values)
    for panel in panels:
        others, own = panel.lines
        assert others.get_color() == GREY
        assert own.get_color() == looks[panel.get_title()].colour
        np.testing.assert_array_equal(own.get_ydata(), values[panel.get_title()])
    # The others one after another, a gap behind each.
    gap = [math.nan]
    expected = [*values["b"], *gap, *values["c"], *gap, *values["d"], *gap]
    np.testing.assert_array_equal(panels[0].lines[0].get_ydata(), expected)
    np.testing.assert_array_equal(panels[0].lines[0].get_xdata(), [0, 1, 2, *gap] * 3)


def test_the_lowest_panel_of_each_column_names_the_axes(drawn, tmp_path):
    values = {name: [0.0, 1.0] for name in "abcd"}
    looks = dict.fromkeys(values, LOOKS["a"])
    parallel_plot(values, looks, ["first", "second"], tmp_path / "t.png", Texts())
    named = {
        panel.get_title(): [
            label.get_text() for label in panel.get_xticklabels() if label.get_visible()
        ]
        for panel in drawn[0].axes
    }
    below = ["first", "second"]
    assert named == {"a": [], "b": below, "c": below, "d": below}


def test_one_method_alone_has_nobody_in_grey(drawn, tmp_path):
    parallel_plot({"a": [0.5, 1.0]}, LOOKS, ["x", "y"], tmp_path / "t.png", Texts())
    (panel,) = drawn[0].axes
    others, own = panel.lines
    assert len(others.get_xdata()) == 0
    assert own.get_ydata().tolist() == [0.5, 1.0]
