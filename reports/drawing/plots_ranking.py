"""Pictures of a ranking: mean ranks with their critical difference, accuracy against what it costs,
and each method on every axis.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogFormatter

from fedtables.metrics.names import MEGABYTES_DOWN, MEGABYTES_UP
from fedtables.reports.drawing.figures import (
    TWO_COLUMNS,
    UNSETTLED,
    Texts,
    blank,
    finish,
    page,
    styled,
)
from fedtables.reports.drawing.palette import NEUTRAL, Look, looks_of
from fedtables.reports.tables.ranking import Spot, spots
from fedtables.reports.tables.standings import ACCURACY, Standings, standings_of
from fedtables.reports.tables.table import Layout, ShownTable

ROW = 0.13
"""Inches of a method's height in a picture of ranks."""
GREY = "#c4c4c4"
"""The colour of other methods' lines."""
COLUMNS = 3
"""Panels of `parallel_plot` beside each other."""


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
    """Mean ranks by method, the best at the top, each with a bar of the critical difference `apart`
    around it: two methods are told apart where their bars do not overlap (Demsar 2006).
    """
    names = sorted(ranks, key=lambda name: ranks[name])
    figure, [[axis]] = page([1], [6.0], ROW * len(names) + 0.5, 1.0)
    around = apart / 2 if math.isfinite(apart) else None
    means = [ranks[name] for name in names]
    axis.errorbar(means, range(len(names)), xerr=around, fmt="o", color=NEUTRAL, elinewidth=1.4)
    axis.set_yticks(range(len(names)), [f"{name}  {ranks[name]:.2f}" for name in names])
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.set_xlim(0.5, max(len(names), 2) + 0.5)
    axis.set_xticks(range(1, len(names) + 1))
    told = "" if around is None else f"; bars of the critical difference {apart:.2f}"
    axis.set_xlabel(f"mean rank, the lower the better{told}")
    axis.grid(axis="x")
    finish(figure, about, path)


def scorecard_plot(table: ShownTable, path: Path) -> None:
    """Accuracy against bytes, a panel for each condition."""
    found, planes = standings_of([table]), []
    rows = [method.row for method in found.methods if method.ranked]
    for condition in found.conditions:
        costs, gains = (
            {row: _value(found, row, names, condition.key) for row in rows}
            for names in ((MEGABYTES_UP, MEGABYTES_DOWN), (ACCURACY,))
        )
        short = {row for row in rows if condition.key in found.cut_short(row, ACCURACY)}
        places = spots((row, costs[row], gains[row], row in short) for row in rows)
        title = f"{condition.column}, public={condition.public}"
        planes.append(Plane(title, "MB sent, both ways", "Accuracy (%)", places))
    if planes:
        front_plot(planes, table.layout.rows, looks_of(table.layout), path, table.layout)


def _value(found: Standings, row: str, metrics: Sequence[str], key: str) -> float:
    """The sum of some metrics of a method in one condition; not a number where one is missing."""
    return sum(float(found.of(row, metric)["value"].get(key, math.nan)) for metric in metrics)


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
    figure, [axes] = page([len(planes)], [2.1], 1.75)
    for axis, plane in zip(axes, planes, strict=True):
        _plane(axis, plane, titles, looks)
    finish(figure, about, path)


def _plane(axis: Axes, plane: Plane, titles: Mapping[str, str], looks: Mapping[str, Look]) -> None:
    """One panel."""
    shown = [s for s in plane.spots if math.isfinite(s.cost) and math.isfinite(s.gain)]
    # What costs nothing has no place on a logarithmic axis: it stands at its left end.
    least = min((s.cost for s in shown if s.cost > 0), default=1.0) / 2
    axis.set_xscale("log")
    # Numbers without powers, which would touch where an axis has less than a decade.
    axis.xaxis.set_major_formatter(LogFormatter())
    axis.xaxis.set_minor_formatter(LogFormatter())
    best = sorted((max(s.cost, least), s.gain) for s in shown if s.on_front)
    axis.plot([cost for cost, _ in best], [gain for _, gain in best], color=NEUTRAL, lw=0.8)
    for spot in shown:
        look = looks[spot.row]
        style: dict[str, Any] = {"marker": look.marker, "ms": 4.5, "ls": "none", "mew": 1.0}
        face = "white" if spot.cut_short else look.colour
        axis.plot(max(spot.cost, least), spot.gain, mfc=face, mec=look.colour, **style)
        axis.plot([], [], color=look.colour, label=titles[spot.row], **style)  # for the legend
        if spot.cut_short:
            hollow = {**style, "marker": "o", "mfc": "white", "mec": NEUTRAL}
            axis.plot([], [], label=UNSETTLED, **hollow)
    axis.grid()
    axis.set_title(plane.title)
    if plane.ticks:
        axis.minorticks_off()
        axis.set_xticks(plane.ticks, [f"{tick:g}" for tick in plane.ticks])
    free = any(spot.cost <= 0 for spot in shown)
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
