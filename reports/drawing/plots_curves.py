"""Plots of a metric over epochs, and against the bytes that have crossed."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from metrics.names import BANDWIDTH
from reports.drawing.figures import (
    CHANCE,
    FIRST_REACHED,
    GUESS,
    HIGHEST_COMMON,
    chance_of,
    finish,
    limits,
    number_or_nan,
    page,
    styled,
    vertical_axis,
)
from reports.drawing.palette import looks_of
from reports.tables.bandwidth import COMMON
from reports.tables.table import Layout, Line, heading, row_title
from reports.tables.units import scale_of
from results.published import format_column, parse_column

Curve = dict[int, tuple[float, float]]
"""Value and std by epoch."""


@styled
def curve_plot(layout: Layout, lines: Sequence[Line], path: Path, first: Sequence[str]) -> None:
    """Curves over epochs, a panel per metric and column: the rows in `first` (clients), and after
    their end the other rows.
    """
    curves: dict[str, dict[str, dict[str, Curve]]] = {}
    for line in lines:
        keys = parse_column(line["column"])
        if line["status"] != "ok" or "epoch" not in keys:
            continue
        epoch = int(keys.pop("epoch"))
        point = (float(line["value"]), number_or_nan(line["std"]))
        column = format_column(dict(keys))
        curves.setdefault(line["metric"], {}).setdefault(column, {}).setdefault(line["row"], {})[
            epoch
        ] = point
    if not curves:
        return
    figure, axes = page([[1.45] * len(columns) for columns in curves.values()], 1.75)
    for (metric, columns), places in zip(curves.items(), axes, strict=True):
        scale = scale_of(metric, layout.unit)
        points = [
            point
            for rows in columns.values()
            for curve in rows.values()
            for point in curve.values()
        ]
        span = limits(
            [value + sign * np.nan_to_num(std) for value, std in points for sign in (-1, 1)],
            scale.bounds,
        )
        for number, (axis, (column, rows)) in enumerate(zip(places, columns.items(), strict=True)):
            _curves(axis, layout, rows, first)
            _guess(axis, chance_of(layout, scale, column), span)
            axis.set_title(heading(parse_column(column)))
            vertical_axis(axis, span, scale.title, number == 0)
    finish(figure, list(itertools.chain(*axes)), layout, path)


def _curves(axis: Axes, layout: Layout, rows: Mapping[str, Curve], first: Sequence[str]) -> None:
    offset = max((max(points) for row, points in rows.items() if row in first), default=0)
    row_looks = looks_of(layout)
    for row in layout.rows:
        if row not in rows:
            continue
        start = 0 if row in first else offset
        epochs = sorted(rows[row])
        x = np.array(epochs) + start
        y = np.array([rows[row][e][0] for e in epochs])
        s = np.nan_to_num([rows[row][e][1] for e in epochs])
        look = row_looks[row]
        axis.plot(
            x,
            y,
            color=look.colour,
            ls="--" if row in layout.oracles else "-",
            marker=look.marker,
            ms=2.5,
            label=row_title(layout, row),
        )
        if s.any():
            axis.fill_between(x, y - s, y + s, color=look.colour, alpha=0.2, lw=0)
    if offset:
        axis.axvline(offset + 0.5, color="black", lw=0.6, ls=":")
    axis.set_xlabel("epoch (clients | global model)" if offset else "epoch")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))


def _guess(axis: Axes, chance: float, span: tuple[float, float]) -> None:
    """What guessing gives, where the axis reaches it."""
    if chance >= span[0]:
        axis.axhline(chance, label=CHANCE, **GUESS)


@styled
def bandwidth_plot(layout: Layout, lines: Sequence[Line], path: Path, metric: str) -> None:
    """A metric against cumulative GB on a logarithmic axis, a panel per column, with the seeds'
    spread as a band.

    The dotted line is the best value that every row reaches, with a diamond where a row first did.
    Rows whose model learns after all bytes have crossed are vertical, rows that send nothing
    horizontal.
    """
    points: dict[str, dict[str, dict[str, dict[str, tuple[float, float]]]]] = {}
    for line in lines:
        keys = parse_column(line["column"])
        place = keys.pop("round", "") or keys.pop("at", "")
        if line["status"] == "ok" and place:
            value = (float(line["value"]), number_or_nan(line["std"]))
            columns = points.setdefault(format_column(dict(keys)), {})
            columns.setdefault(line["row"], {}).setdefault(place, {})[line["metric"]] = value
    if not points:
        return
    figure, axes = page([[2.8] * len(points)], 2.3)
    scale, traffic = scale_of(metric, layout.unit), scale_of(BANDWIDTH, layout.unit)
    drawn = [
        m[metric] for rows in points.values() for curve in rows.values() for m in curve.values()
    ]
    span = limits(
        [value + sign * np.nan_to_num(std) for value, std in drawn for sign in (-1, 1)],
        scale.bounds,
    )
    for number, (axis, (column, rows)) in enumerate(zip(axes[0], points.items(), strict=True)):
        _traffic(axis, layout, rows, metric)
        _guess(axis, chance_of(layout, scale, column), span)
        axis.set_title(heading(parse_column(column)))
        axis.set_xlabel(f"{traffic.title}, all clients, up and down")
        vertical_axis(axis, span, scale.title, number == 0)
    finish(figure, axes[0], layout, path)


def _traffic(
    axis: Axes,
    layout: Layout,
    rows: Mapping[str, Mapping[str, Mapping[str, tuple[float, float]]]],
    metric: str,
) -> None:
    sent: list[float] = []
    row_looks = looks_of(layout)
    for row in layout.rows:
        if row not in rows:
            continue
        curve = [m for place, m in rows[row].items() if place != COMMON]
        x, (y, s) = (
            np.array([m[BANDWIDTH][0] for m in curve]),
            np.nan_to_num(np.array([m[metric] for m in curve])).T,
        )
        look: dict[str, Any] = {"color": row_looks[row].colour, "label": row_title(layout, row)}
        if not x.any():
            axis.axhline(y[-1], ls="-.", **look)
            continue
        sent += list(x)
        marks: Any = [len(x) - 1] if x[0] == x[-1] else max(1, len(x) // 25)
        axis.plot(
            x,
            y,
            ls="--" if row in layout.oracles else "-",
            marker=row_looks[row].marker,
            ms=2.8,
            markevery=marks,
            **look,
        )
        if s.any():
            axis.fill_between(x, y - s, y + s, color=look["color"], alpha=0.15, lw=0)
        common = rows[row].get(COMMON)
        if common is not None:
            axis.axhline(
                common[metric][0], color="black", lw=0.8, ls=":", zorder=0, label=HIGHEST_COMMON
            )
            axis.plot(
                [], [], "D", ms=5, mfc="none", mec="black", mew=1.0, ls="none", label=FIRST_REACHED
            )
            axis.plot(
                common[BANDWIDTH][0],
                common[metric][0],
                "D",
                ms=5,
                mfc="none",
                mec=look["color"],
                mew=1.0,
            )
    axis.set_xscale("log")
    if sent:
        wide = max(sent) > 100 * min(sent)
        axis.xaxis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.grid(axis="x")
