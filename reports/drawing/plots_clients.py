"""Plots of clients: what each holds, and how much of each leaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from reports.drawing.figures import Texts, finish, page, spread_bars, styled
from reports.drawing.frames import ends, measured
from reports.drawing.palette import NEUTRAL, looks_of
from reports.tables.table import Layout, row_title
from reports.tables.units import scale_of
from results.published import parse_column

LARGEST = 40.0
"""Area of the largest bubble, in square points."""
AVERAGE = "average"
"""The client of a row's mean over clients."""


@styled
def partition_plot(counts: Mapping[str, np.ndarray], path: Path, about: Layout | Texts) -> None:
    """Clients x classes bubble plots, a panel per partition: counts (clients, classes), area by
    samples.
    """
    figure, [axes] = page([[1.5] * len(counts)], 1.9, 0.3)
    largest = max(int(matrix.max()) for matrix in counts.values())
    for axis, (name, matrix) in zip(axes, counts.items(), strict=True):
        clients, classes = np.nonzero(matrix)
        area = LARGEST * matrix[clients, classes] / largest
        axis.scatter(clients, classes, s=area, color=NEUTRAL, linewidths=0)
        axis.set_title(name)
        axis.set_xlabel("client")
        axis.set_xticks(range(0, len(matrix), max(1, len(matrix) // 10)))
        axis.set_yticks(range(0, matrix.shape[1], 1 if matrix.shape[1] <= 20 else 10))
        axis.margins(0.08)
    axes[0].set_ylabel("class")
    size: dict[str, Any] = {"ls": "none", "color": NEUTRAL, "mew": 0, "ms": LARGEST**0.5}
    bubble = Line2D([], [], marker="o", label=f"{largest:,} samples", **size)
    finish(figure, about, path, [bubble])


@styled
def leakage_plot(layout: Layout, lines: pd.DataFrame, path: Path, metrics: Sequence[str]) -> None:
    """Each metric of every client, on the left, and on average, on the right, from the columns
    `client=1`, ..., `client=average` of the table. A row that is in several columns beside has a
    series in each, all but the first with hollow points; a metric that one alone of several series
    has is not drawn.

    The bars on the left are standard deviations over seeds, those on the right go from the least to
    the largest client. An axis is logarithmic where the largest value is above ten times the
    smallest.
    """
    found = measured(lines, "client")
    found = found[found["metric"].isin(metrics) & found["row"].isin(layout.rows)]
    clients = [client for client in found["client"].unique() if client != AVERAGE]
    if not clients:
        return
    found["series"] = _series_titles(layout, found)
    looks = _looks(layout, found)
    have = found.groupby("metric")["series"].nunique()
    shown = [m for m in metrics if have.get(m, 0) > (1 if have.max() > 1 else 0)]
    figure, panels = page(
        [[0.3 + 0.33 * len(clients), 0.5 + 0.25 * len(looks)] for _ in shown], 1.9
    )
    for metric, (left, right) in zip(shown, panels, strict=True):
        _one_metric(left, right, found[found["metric"] == metric], looks, clients)
        left.set_ylabel(scale_of(metric, layout.unit).title)
    panels[0][0].set_title("each client")
    panels[0][1].set_title("mean, range")
    panels[-1][0].set_xlabel("client")
    finish(figure, layout, path)


def _series_titles(layout: Layout, found: pd.DataFrame) -> list[str]:
    """Of each line the row's title, with what tells its columns apart where it is in several."""
    columns = {
        row: list(map(parse_column, of["column"].unique())) for row, of in found.groupby("row")
    }
    titles = []
    for row, column in zip(found["row"], found["column"], strict=True):
        pairs, others = parse_column(column), columns[row]
        apart = [f"{k} {v}" for k, v in pairs.items() if any(o.get(k) != v for o in others)]
        titles.append(", ".join([row_title(layout, row), *apart]))
    return titles


def _looks(layout: Layout, found: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """How each series is drawn, in the order of rows."""
    looks: dict[str, dict[str, Any]] = {}
    for row in layout.rows:
        look = looks_of(layout)[row]
        for number, title in enumerate(found.loc[found["row"] == row, "series"].unique()):
            hollow = {"markerfacecolor": "white"} if number else {}
            looks[title] = {"fmt": look.marker, "elinewidth": 0.8, "color": look.colour, **hollow}
    return looks


def _one_metric(
    left: Axes,
    right: Axes,
    found: pd.DataFrame,
    looks: Mapping[str, Mapping[str, Any]],
    clients: Sequence[str],
) -> None:
    """By series, the mean and deviation of every client and of `AVERAGE`, in two panels."""
    right.sharey(left)
    series = [title for title in looks if (found["series"] == title).any()]
    width = 0.6 / max(1, len(series) - 1)
    for position, title in enumerate(series):
        look = {**looks[title], "label": title}
        of_client = found[found["series"] == title].set_index("client")[["value", "std"]]
        points = of_client.reindex(list(clients))
        x = np.arange(len(clients)) + (position - (len(series) - 1) / 2) * width
        left.errorbar(x, points["value"], yerr=spread_bars(points["std"].to_numpy()), **look)
        least, most = points["value"].min(), points["value"].max()
        mean = of_client["value"].get(AVERAGE, points["value"].mean())
        right.errorbar([position], [mean], yerr=[[mean - least], [most - mean]], **look)
    if 0 < 10 * found["value"].min() < found["value"].max():
        left.set_yscale("log")
    else:
        left.set_ylim(0, 1.06 * max(ends(found)))
    left.set_xticks(range(len(clients)), clients)
    right.set_xticks([])
    right.set_xlim(-0.7, len(series) - 0.3)
    right.tick_params(labelleft=False)
    for axis in (left, right):
        axis.grid(axis="y")
