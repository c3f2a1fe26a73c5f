"""Pictures of a ranking: mean ranks with their critical difference, accuracy against what it costs,
and each method on every axis.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from reports.drawing.figures import TICK, UNSETTLED, Texts, finish, page, styled
from reports.drawing.palette import NEUTRAL, Look
from reports.tables.ranking import front

BAR = 0.11
"""Inches between two lines of a picture of ranks."""


@dataclass(frozen=True)
class Point:
    """A method in the plane of a cost and a gain."""

    title: str
    look: Look
    cost: float
    gain: float
    cut_short: bool = False


@dataclass(frozen=True)
class Plane:
    """One panel of points."""

    title: str
    cost: str
    """The name of the horizontal axis, which is logarithmic."""
    gain: str
    points: tuple[Point, ...]


@styled
def rank_plot(ranks: Mapping[str, float], apart: float, path: Path, about: Texts) -> None:
    """Mean ranks by method on one axis, the best on the left; bars join methods that differ by less
    than the critical difference `apart` (Demsar 2006, figure 1).
    """
    names = sorted(ranks, key=lambda name: ranks[name])
    groups = _alike([ranks[name] for name in names], apart)
    lines = math.ceil(len(names) / 2)
    top, bottom = 2 + len(groups), lines + 1
    figure, [[axis]] = page([[6.0]], BAR * (top + bottom) + 0.35)
    low, high = 1.0, float(max(len(names), 2))
    axis.set_xlim(low - 0.05 * (high - low), high + 0.05 * (high - low))
    axis.set_ylim(-bottom - 0.5, top)
    axis.spines[["left", "bottom"]].set_visible(False)
    axis.set_yticks([])
    axis.xaxis.set_ticks_position("top")
    axis.set_xticks(range(1, len(names) + 1))
    axis.spines["top"].set_visible(True)
    axis.set_xlabel("mean rank; the lower the better")
    axis.xaxis.set_label_position("top")
    if math.isfinite(apart):
        ends = (low, min(low + apart, high))
        axis.plot(ends, (top - 0.6, top - 0.6), color="black", lw=1.4, marker="|", ms=5)
        more = "" if low + apart <= high else ", longer than the axis"
        place = (ends[1] + 0.1, top - 0.6)
        axis.text(*place, f"critical difference {apart:.2f}{more}", va="center", fontsize=TICK)
    for number, (first, last) in enumerate(groups):
        height = top - 1.5 - number
        axis.plot(
            (ranks[names[first]] - 0.05, ranks[names[last]] + 0.05),
            (height, height),
            color=NEUTRAL,
            lw=2.2,
            solid_capstyle="butt",
        )
    for place_of, name in enumerate(names):
        left = place_of < lines
        depth = -(place_of + 1) if left else -(len(names) - place_of)
        edge = axis.get_xlim()[0 if left else 1]
        axis.plot(
            (ranks[name], ranks[name], edge), (top - 1, depth, depth), color="#777777", lw=0.6
        )
        text = f"{name}  {ranks[name]:.2f}" if left else f"{ranks[name]:.2f}  {name}"
        align = "right" if left else "left"
        axis.text(edge, depth, f" {text} ", ha=align, va="center", fontsize=TICK)
    finish(figure, [axis], about, path)


def _alike(ranks: Sequence[float], apart: float) -> list[tuple[int, int]]:
    """Longest runs of sorted ranks whose ends differ by less than `apart`: first and last of
    each.
    """
    runs: list[tuple[int, int]] = []
    for first, rank in enumerate(ranks):
        last = max(k for k, other in enumerate(ranks) if other - rank < apart or k == first)
        if last > first and not (runs and runs[-1][1] >= last):
            runs.append((first, last))
    return runs


@styled
def front_plot(planes: Sequence[Plane], path: Path, about: Texts) -> None:
    """A panel for each plane: methods by cost and gain, those that nothing beats joined by a
    line; hollow where a run was cut short.
    """
    figure, [axes] = page([[2.1] * len(planes)], 1.75)
    handles: dict[str, Line2D] = {}
    for axis, plane in zip(axes, planes, strict=True):
        _plane(axis, plane, handles)
    if UNSETTLED in handles:
        handles[UNSETTLED] = handles.pop(UNSETTLED)  # to the end
    finish(figure, axes, about, path, list(handles.values()))


def _plane(axis: Axes, plane: Plane, handles: dict[str, Line2D]) -> None:
    shown = [p for p in plane.points if math.isfinite(p.cost) and math.isfinite(p.gain)]
    # What costs nothing has no place on a logarithmic axis: it stands at its left end.
    costs = [p.cost for p in shown if p.cost > 0]
    least = min(costs, default=1.0) / 2
    at = [max(p.cost, least) for p in shown]
    axis.set_xscale("log")
    on = front([p.cost for p in shown], [p.gain for p in shown])
    best = sorted((x, p.gain) for x, p, is_on in zip(at, shown, on, strict=True) if is_on)
    axis.plot(*zip(*best, strict=True) if best else ([], []), color=NEUTRAL, lw=0.8, zorder=1)
    for x, point in zip(at, shown, strict=True):
        look = point.look
        face = "white" if point.cut_short else look.colour
        (drawn,) = axis.plot(
            x, point.gain, look.marker, ms=4.5, mfc=face, mec=look.colour, mew=1.0, ls="none"
        )
        solid = Line2D([], [], marker=look.marker, ms=4.5, color=look.colour, ls="none")
        solid.set_label(point.title)
        handles.setdefault(point.title, solid)
        drawn.set_label("_")
        if point.cut_short:
            hollow = Line2D([], [], marker="o", ms=4.5, mfc="white", mec=NEUTRAL, ls="none")
            hollow.set_label(UNSETTLED)
            handles.setdefault(UNSETTLED, hollow)
    axis.grid()
    axis.set_title(plane.title)
    free = any(point.cost <= 0 for point in shown)
    axis.set_xlabel(f"{plane.cost}; 0 at the left end" if free else plane.cost)
    axis.set_ylabel(plane.gain)


@styled
def parallel_plot(
    values: Mapping[str, Sequence[float]],
    looks: Mapping[str, Look],
    axes_titles: Sequence[str],
    path: Path,
    about: Texts,
) -> None:
    """A line for each method over several axes, each from the worst (0) to the best (1) of all;
    values are scaled so by the caller.
    """
    figure, [[axis]] = page([[6.2]], 2.0)
    places = np.arange(len(axes_titles))
    for title, heights in values.items():
        look = looks[title]
        axis.plot(places, heights, color=look.colour, marker=look.marker, ms=3.5, label=title)
    axis.set_xticks(places, axes_titles)
    axis.set_xlim(-0.1, len(axes_titles) - 0.9)
    axis.set_ylim(-0.05, 1.05)
    axis.set_yticks((0, 1), ("worst", "best"))
    axis.grid(axis="x")
    finish(figure, [axis], about, path)
