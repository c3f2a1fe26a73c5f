"""Plots of clients: what each holds, and how much of each leaks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from reports.drawing.figures import Texts, finish, number_or_nan, page, spread_bars, styled
from reports.drawing.palette import NEUTRAL, looks_of
from reports.tables.table import Layout, Line, row_title
from reports.tables.units import scale_of
from results.published import parse_column

LARGEST = 40.0
"""Area of the largest bubble, in square points."""


@styled
def partition_plot(counts: Mapping[str, np.ndarray], path: Path, about: Layout | Texts) -> None:
    """Clients x classes bubble plots, a panel per partition: counts (clients, classes), area by
    samples.
    """
    figure, axes = page([[1.5] * len(counts)], 1.9, 0.3)
    largest = max(int(matrix.max()) for matrix in counts.values())
    for axis, (name, matrix) in zip(axes[0], counts.items(), strict=True):
        clients, classes = np.nonzero(matrix)
        area = LARGEST * matrix[clients, classes] / largest
        axis.scatter(clients, classes, s=area, color=NEUTRAL, linewidths=0)
        axis.set_title(name)
        axis.set_xlabel("client")
        axis.set_xticks(range(0, len(matrix), max(1, len(matrix) // 10)))
        axis.set_yticks(
            range(matrix.shape[1]) if matrix.shape[1] <= 20 else range(0, matrix.shape[1], 10)
        )
        axis.margins(0.08)
    axes[0][0].set_ylabel("class")
    size: dict[str, Any] = {"ls": "none", "color": NEUTRAL, "mew": 0, "ms": LARGEST**0.5}
    finish(
        figure, [], about, path, [Line2D([], [], marker="o", label=f"{largest:,} samples", **size)]
    )


AVERAGE = "average"
"""The client of a row's mean over clients."""


@styled
def leakage_plot(layout: Layout, lines: Sequence[Line], path: Path, metrics: Sequence[str]) -> None:
    """Each metric of every client, on the left, and on average, on the right, from the columns
    `client=1`, ..., `client=average` of the table. A row that is in several columns beside has a
    series in each, all but the first with hollow points; a metric that one alone of several series
    has is not drawn.

    The bars on the left are standard deviations over seeds, those on the right go from the least to
    the largest client. An axis is logarithmic where the largest value is above ten times the
    smallest.
    """
    found: dict[Series, dict[str, dict[str, tuple[float, float]]]] = {}
    for line in lines:
        column = parse_column(line["column"])
        client = column.pop("client", None)
        if line["status"] == "ok" and line["metric"] in metrics and client is not None:
            of_metric = found.setdefault((line["row"], tuple(column.items())), {})
            of_metric.setdefault(line["metric"], {})[client] = (
                float(line["value"]),
                number_or_nan(line["std"]),
            )
    series = [one for row in layout.rows for one in found if one[0] == row]
    have = {metric: sum(metric in found[one] for one in series) for metric in metrics}
    most = max(have.values(), default=0)
    shown = [metric for metric in metrics if have[metric] > (1 if most > 1 else 0)]
    clients = [
        client
        for client in dict.fromkeys(c for one in series for of in found[one].values() for c in of)
        if client != AVERAGE
    ]
    if not clients:
        return
    needs = [0.3 + 0.33 * len(clients), 0.5 + 0.25 * len(series)]
    figure, panels = page([needs for _ in shown], 1.9)
    titles = _series_titles(layout, series)
    for metric, (left, right) in zip(shown, panels, strict=True):
        measured = [one for one in series if metric in found[one]]
        values = {titles[one]: found[one][metric] for one in measured}
        looks_of = {titles[one]: _look(layout, series, one) for one in measured}
        _one_metric(left, right, values, looks_of, clients)
        left.set_ylabel(scale_of(metric, layout.unit).title)
    panels[0][0].set_title("each client")
    panels[0][1].set_title("mean, range")
    panels[-1][0].set_xlabel("client")
    finish(figure, [axis for pair in panels for axis in pair], layout, path)


Series = tuple[str, tuple[tuple[str, str], ...]]
"""A row, and its column but for the client."""


def _series_titles(layout: Layout, series: Sequence[Series]) -> dict[Series, str]:
    """The row's, with what tells its columns apart where it is in several."""
    titles = {}
    for row, column in series:
        others = [dict(other) for one, other in series if one == row]
        apart = [f"{k} {v}" for k, v in column if any(other.get(k) != v for other in others)]
        titles[row, column] = ", ".join([row_title(layout, row), *apart])
    return titles


def _look(layout: Layout, series: Sequence[Series], one: Series) -> dict[str, Any]:
    of_row = looks_of(layout)[one[0]]
    first = next(other for other in series if other[0] == one[0])
    hollow = {} if one == first else {"markerfacecolor": "white"}
    return {"fmt": of_row.marker, "elinewidth": 0.8, "color": of_row.colour, **hollow}


def _one_metric(
    left: Axes,
    right: Axes,
    values: Mapping[str, Mapping[str, tuple[float, float]]],
    looks_of: Mapping[str, Mapping[str, Any]],
    clients: Sequence[str],
) -> None:
    """By series, the mean and deviation of every client and of `AVERAGE`, in two panels."""
    right.sharey(left)
    width = 0.6 / max(1, len(values) - 1)
    for position, (title, of_client) in enumerate(values.items()):
        look = {**looks_of[title], "label": title}
        points = [of_client.get(client, (math.nan, math.nan)) for client in clients]
        x = np.arange(len(clients)) + (position - (len(values) - 1) / 2) * width
        left.errorbar(
            x,
            [value for value, _ in points],
            yerr=spread_bars(np.array([std for _, std in points])),
            **look,
        )
        finite = np.array([value for value, _ in points if math.isfinite(value)])
        average = of_client.get(AVERAGE, (float(finite.mean()), math.nan))[0]
        right.errorbar(
            [position], [average], yerr=[[average - finite.min()], [finite.max() - average]], **look
        )
    everything = [value for of_client in values.values() for value, _ in of_client.values()]
    if min(everything) > 0 and max(everything) > 10 * min(everything):
        left.set_yscale("log")
    else:
        tops = [
            value + (std if math.isfinite(std) else 0.0)
            for of_client in values.values()
            for value, std in of_client.values()
        ]
        left.set_ylim(0, 1.06 * max(tops))
    left.set_xticks(range(len(clients)), clients)
    right.set_xticks([])
    right.set_xlim(-0.7, len(values) - 0.3)
    right.tick_params(labelleft=False)
    for axis in (left, right):
        axis.grid(axis="y")
