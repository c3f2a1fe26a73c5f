"""Pictures of a ranking, by what their axes hold: ranks, planes of a cost, and a panel a method."""

import math

import numpy as np
import pytest

from fedtables.reports.drawing.figures import Texts
from fedtables.reports.drawing.palette import Look
from fedtables.reports.drawing.plots_ranking import (
    GREY,
    Plane,
    front_plot,
    parallel_plot,
    rank_plot,
)
from fedtables.reports.tables.ranking import spots

LOOKS = {name: Look(colour, "s", "") for name, colour in (("a", "#112233"), ("b", "#445566"))}
TITLES = {"a": "A", "b": "B"}


def plane(*places, **more):
    return Plane("x", "MB", "Accuracy", spots(places), **more)


def test_ranks_stand_at_their_places_with_the_critical_difference_around_each(drawn, tmp_path):
    ranks = {"c": 3.0, "a": 1.2, "b": 1.8}
    rank_plot(ranks, 1.0, tmp_path / "t.png", Texts())
    rank_plot(ranks, math.inf, tmp_path / "t.png", Texts())
    for figure, spans in zip(drawn, ([(0.7, 1.7), (1.3, 2.3), (2.5, 3.5)], []), strict=True):
        (axis,) = figure.axes
        names = [label.get_text() for label in axis.get_yticklabels()]
        assert names == ["a  1.20", "b  1.80", "c  3.00"]
        (points,) = axis.containers
        assert points[0].get_xydata().tolist() == [[1.2, 0], [1.8, 1], [3, 2]]
        bars = [segment[:, 0] for lines in points[2] for segment in lines.get_segments()]
        assert bars == [pytest.approx(span) for span in spans]
        assert ("critical difference 1.00" in axis.get_xlabel()) == bool(spans)


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
    front, *points = (line for line in axis.lines if len(line.get_xdata()))
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
