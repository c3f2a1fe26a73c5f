"""Plots of a metric over epochs, and against the bytes that have crossed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from fedtables.metrics.names import BANDWIDTH
from fedtables.reports.drawing.figures import (
    CHANCE,
    FIRST_REACHED,
    GUESS,
    HIGHEST_COMMON,
    chance_of,
    finish,
    limits,
    page,
    styled,
    vertical_axis,
)
from fedtables.reports.drawing.frames import ends, measured
from fedtables.reports.drawing.palette import looks_of
from fedtables.reports.tables.bandwidth import COMMON
from fedtables.reports.tables.table import Layout, ShownTable, heading, row_title
from fedtables.reports.tables.units import scale_of
from fedtables.results.published import parse_column


@styled
def curve_plot(table: ShownTable, path: Path) -> None:
    """Curves over epochs, a panel per metric and column: the rows of clients, and after their end
    the other rows.
    """
    layout, points = table.layout, measured(table.lines, "epoch").astype({"epoch": int})
    if points.empty:
        return
    metrics = points.groupby("metric", sort=False)
    counts = [of_it["column"].nunique() for _, of_it in metrics]
    figure, axes = page(counts, [1.45] * len(counts), 1.75)
    for (metric, of_it), places in zip(metrics, axes, strict=True):
        scale = scale_of(str(metric), layout.unit)
        span = limits(ends(of_it), scale.bounds)
        columns = of_it.groupby("column", sort=False)
        for axis, (column, rows) in zip(places, columns, strict=True):
            _curves(axis, layout, rows, table.clients)
            _finished(axis, layout, str(column), span, str(metric), axis is places[0])
    finish(figure, layout, path)


def _curves(axis: Axes, layout: Layout, points: pd.DataFrame, first: Sequence[str]) -> None:
    offset = points.loc[points["row"].isin(first), "epoch"].max()
    offset = 0 if np.isnan(offset) else int(offset)
    by_row = dict(iter(points.sort_values("epoch").groupby("row")))
    for row in filter(by_row.__contains__, layout.rows):
        of_row = by_row[row]
        _line(axis, layout, row, of_row["epoch"] + (0 if row in first else offset), of_row)
    if offset:
        axis.axvline(offset + 0.5, color="black", lw=0.6, ls=":")
    axis.set_xlabel("epoch (clients | global model)" if offset else "epoch")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))


def _line(
    axis: Axes, layout: Layout, row: str, x: pd.Series, points: pd.DataFrame, every: Any = None
) -> None:
    """A row's values over `x`, with the seeds' spread as a band."""
    look = looks_of(layout)[row]
    style: dict[str, Any] = {"color": look.colour, "ls": "--" if row in layout.oracles else "-"}
    marks: dict[str, Any] = {"marker": look.marker, "ms": 2.5, "markevery": every}
    axis.plot(x, points["value"], label=row_title(layout, row), **style, **marks)
    around = points["std"].fillna(0.0)
    if around.any():
        low, high = points["value"] - around, points["value"] + around
        axis.fill_between(x, low, high, color=look.colour, alpha=0.2, lw=0)


def _finished(
    axis: Axes, layout: Layout, column: str, span: tuple[float, float], metric: str, named: bool
) -> None:
    """A panel with its title, its vertical axis, and what guessing gives where that reaches it."""
    scale = scale_of(metric, layout.unit)
    chance = chance_of(layout, scale, column)
    if chance >= span[0]:
        axis.axhline(chance, label=CHANCE, **GUESS)
    axis.set_title(heading(parse_column(column)))
    vertical_axis(axis, span, scale.title, named)


@styled
def bandwidth_plot(table: ShownTable, path: Path) -> None:
    """The first metric against cumulative GB on a logarithmic axis, a panel per column, with the
    seeds' spread as a band.

    The dotted line is the best value that every row reaches, with a diamond where a row first did.
    Rows whose model learns after all bytes have crossed are vertical, rows that send nothing
    horizontal.
    """
    layout, metric = table.layout, table.metrics[0]
    points = measured(table.lines, "round", "at")
    if points.empty:
        return
    place = ["column", "row", "round", "at"]
    sent = points[points["metric"] == BANDWIDTH].set_index(place)["value"].rename("sent")
    reached = points[points["metric"] == metric].join(sent, on=place)
    columns = reached.groupby("column", sort=False)
    figure, [axes] = page([len(columns)], [2.8], 2.3)
    span = limits(ends(reached), scale_of(metric, layout.unit).bounds)
    for axis, (column, rows) in zip(axes, columns, strict=True):
        _traffic(axis, layout, rows)
        axis.set_xlabel(f"{scale_of(BANDWIDTH, layout.unit).title}, all clients, up and down")
        _finished(axis, layout, str(column), span, metric, axis is axes[0])
    finish(figure, layout, path)


def _traffic(axis: Axes, layout: Layout, points: pd.DataFrame) -> None:
    diamond: dict[str, Any] = {"marker": "D", "ms": 5, "mfc": "none", "mew": 1.0, "ls": "none"}
    for row in layout.rows:
        of_row = points[points["row"] == row]
        curve, common = of_row[of_row["at"] != COMMON], of_row[of_row["at"] == COMMON]
        x = curve["sent"]
        if curve.empty:
            continue
        colour = looks_of(layout)[row].colour
        if not x.any():
            level = curve["value"].iloc[-1]
            axis.axhline(level, ls="-.", color=colour, label=row_title(layout, row))
            continue
        marks: Any = [len(x) - 1] if x.iloc[0] == x.iloc[-1] else max(1, len(x) // 25)
        _line(axis, layout, row, x, curve, marks)
        for gigabytes, level in zip(common["sent"], common["value"], strict=True):
            axis.axhline(level, color="black", lw=0.8, ls=":", zorder=0, label=HIGHEST_COMMON)
            axis.plot([], [], mec="black", label=FIRST_REACHED, **diamond)
            axis.plot(gigabytes, level, mec=colour, **diamond)
    axis.set_xscale("log")
    crossed = points.loc[(points["at"] != COMMON) & (points["sent"] > 0), "sent"]
    if len(crossed):
        wide = crossed.max() > 100 * crossed.min()
        axis.xaxis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.grid(axis="x")
