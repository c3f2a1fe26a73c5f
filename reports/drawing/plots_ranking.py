"""Pictures of a ranking: mean ranks with their critical difference, accuracy against what it costs,
and each method on every axis.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogFormatter

from reports.drawing.figures import (
    TICK,
    TWO_COLUMNS,
    UNSETTLED,
    Texts,
    blank,
    finish,
    page,
    styled,
)
from reports.drawing.palette import NEUTRAL, Look
from reports.tables.ranking import Spot
from reports.tables.table import Layout

BAR = 0.11
"""Inches between two lines of a picture of ranks."""
GREY = "#c4c4c4"
"""The colour of other methods' lines."""


@dataclass(frozen=True)
class Plane:
    """One panel of methods by cost and gain."""

    title: str
    cost: str
    """The name of the horizontal axis, which is logarithmic."""
    gain: str
    spots: Sequence[Spot]
    ticks: Sequence[float] = ()
    """The only costs that there are, where they are few."""


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
        ground: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
        text = f"critical difference {apart:.2f}{more}"
        axis.text(*place, text, va="center", fontsize=TICK, bbox=ground)
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
    finish(figure, about, path)


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
def front_plot(
    planes: Sequence[Plane],
    titles: Mapping[str, str],
    looks: Mapping[str, Look],
    path: Path,
    about: Layout | Texts,
) -> None:
    """A panel for each plane: methods by cost and gain, those that nothing beats joined by a
    line; hollow where a run was cut short. `titles` and `looks` are by row.
    """
    figure, [axes] = page([[2.1] * len(planes)], 1.75)
    handles: dict[str, Line2D] = {}
    for axis, plane in zip(axes, planes, strict=True):
        _plane(axis, plane, titles, looks, handles)
    if UNSETTLED in handles:
        handles[UNSETTLED] = handles.pop(UNSETTLED)  # to the end
    finish(figure, about, path, list(handles.values()))


def _plane(
    axis: Axes,
    plane: Plane,
    titles: Mapping[str, str],
    looks: Mapping[str, Look],
    handles: dict[str, Line2D],
) -> None:
    shown = [s for s in plane.spots if math.isfinite(s.cost) and math.isfinite(s.gain)]
    # What costs nothing has no place on a logarithmic axis: it stands at its left end.
    costs = [s.cost for s in shown if s.cost > 0]
    least = min(costs, default=1.0) / 2
    axis.set_xscale("log")
    # Numbers without powers, which would touch where an axis has less than a decade.
    axis.xaxis.set_major_formatter(LogFormatter())
    axis.xaxis.set_minor_formatter(LogFormatter())
    best = sorted((max(s.cost, least), s.gain) for s in shown if s.on_front)
    axis.plot(*zip(*best, strict=True) if best else ([], []), color=NEUTRAL, lw=0.8, zorder=1)
    for spot in shown:
        look, title = looks[spot.row], titles[spot.row]
        face = "white" if spot.cut_short else look.colour
        at = max(spot.cost, least)
        style: dict[str, Any] = {"marker": look.marker, "ms": 4.5, "ls": "none"}
        axis.plot(at, spot.gain, mfc=face, mec=look.colour, mew=1.0, label="_", **style)
        handles.setdefault(title, Line2D([], [], color=look.colour, label=title, **style))
        if spot.cut_short:
            hollow: dict[str, Any] = {"marker": "o", "ms": 4.5, "mfc": "white", "mec": NEUTRAL}
            handles.setdefault(UNSETTLED, Line2D([], [], ls="none", label=UNSETTLED, **hollow))
    axis.grid()
    axis.set_title(plane.title)
    if plane.ticks:
        axis.minorticks_off()
        axis.set_xticks(plane.ticks, [f"{tick:g}" for tick in plane.ticks])
    free = any(spot.cost <= 0 for spot in shown)
    axis.set_xlabel(f"{plane.cost}; 0 at the left end" if free else plane.cost)
    axis.set_ylabel(plane.gain)


COLUMNS = 3
"""Panels of `parallel_plot` beside each other."""


@styled
def parallel_plot(
    values: Mapping[str, Sequence[float]],
    looks: Mapping[str, Look],
    axes_titles: Sequence[str],
    path: Path,
    about: Texts,
) -> None:
    """A panel for each method, by title: its values on several axes, each from the worst (0) to the
    best (1) of all, in front of those of the others in grey. Values are scaled so by the caller; a
    line has a gap where one is not a number.
    """
    lines = math.ceil(len(values) / COLUMNS)
    figure = blank((TWO_COLUMNS, 1.0 * lines + 0.75), 0.03)
    panels = list(figure.subplots(lines, COLUMNS, sharex=True, sharey=True, squeeze=False).flat)
    places = np.arange(len(axes_titles))
    for number, (axis, (title, heights)) in enumerate(zip(panels, values.items(), strict=False)):
        # One path with gaps: a smaller SVG than one of each.
        others = [[*other, math.nan] for name, other in values.items() if name != title]
        along = np.tile([*places, math.nan], len(others))
        axis.plot(along, list(chain.from_iterable(others)), color=GREY, lw=0.5, zorder=1)
        look = looks[title]
        style: dict[str, Any] = {"color": look.colour, "marker": look.marker, "ms": 3.5, "lw": 1.4}
        axis.plot(places, heights, zorder=3, **style)
        axis.set_title(title)
        axis.grid(axis="x")
        axis.set_yticks((0, 1), ("worst", "best"))
        axis.set_ylim(-0.08, 1.08)
        axis.set_xticks(places, axes_titles, rotation=90)
        axis.tick_params(labelbottom=number + COLUMNS >= len(values))
    for axis in panels[len(values) :]:
        axis.remove()
    finish(figure, about, path)
