"""Accuracy against what it costs: what is hollow, and what the legend says of it."""

from __future__ import annotations

import math

import pytest

from reports.drawing.figures import Texts
from reports.drawing.palette import Look
from reports.drawing.plots_ranking import Plane, Point, front_plot

LOOK = Look("#112233", "s", "")


@pytest.mark.parametrize(
    ("short", "gain", "entries"),
    [(True, 50.0, ["a", "b", "cut short"]), (False, 50.0, ["a", "b"]), (True, math.nan, ["b"])],
)
def test_the_legend_says_what_hollow_points_are_where_there_are_any(
    drawn, tmp_path, short, gain, entries
):
    points = (Point("a", LOOK, 1.0, gain, short), Point("b", LOOK, 2.0, 60.0))
    front_plot([Plane("x", "MB", "Accuracy", points)], tmp_path / "t.png", Texts())
    (legend,) = drawn[0].legends
    assert [text.get_text() for text in legend.get_texts()] == entries


@pytest.mark.parametrize(("least", "label"), [(0.0, "MB; 0 at the left end"), (1.0, "MB")])
def test_the_axis_says_where_what_costs_nothing_stands(drawn, tmp_path, least, label):
    points = (Point("a", LOOK, least, 50.0), Point("b", LOOK, 2.0, 60.0))
    front_plot([Plane("x", "MB", "Accuracy", points)], tmp_path / "t.png", Texts())
    (axis,) = drawn[0].axes
    assert axis.get_xlabel() == label
