"""Plots of clients: what each holds, and how much of each leaks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from fedtables.reports.drawing.figures import Texts, finish, page, spread_bars, styled
from fedtables.reports.drawing.frames import ends, measured
from fedtables.reports.drawing.palette import NEUTRAL, looks_of
from fedtables.reports.tables.table import Layout, ShownTable, row_title
from fedtables.reports.tables.units import scale_of
from fedtables.results.published import parse_column
from fedtables.results.record import Record

LARGEST = 40.0
"""Area of the largest bubble, in square points."""
AVERAGE = "average"
"""The client of a row's mean over clients."""


@styled
def partition_plot(counts: Mapping[str, np.ndarray], path: Path, about: Layout | Texts) -> None:
    """Clients x classes bubble plots, a panel per partition: counts (clients, classes), area by
    samples.
    """
    figure, [axes] = page([len(counts)], [1.5], 1.9, 0.3)
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
    size: dict[str, Any] = {"color": NEUTRAL, "mew": 0, "ms": LARGEST**0.5}
    axes[0].plot([], [], "o", label=f"{largest:,} samples", **size)  # for the legend
    finish(figure, about, path)


def classes(
    arrays: Mapping[str, Mapping[str, np.ndarray]],
    layout: Layout,
    path: Path,
    drawn: Sequence[Record],
) -> None:
    """Classes by client, a panel for the first division of each row."""
    named = {title: arrays[row][""] for row, title in layout.rows.items() if row in arrays}
    partition_plot(named, path, layout)


@styled
def leakage_plot(table: ShownTable, path: Path) -> None:
    """Each metric of every client, on the left, and on average, on the right, from the columns
    `client=1`, ..., `client=average` of the table. A row that is in several columns beside has a
    series in each, all but the first with hollow points; a metric that one alone of several series
    has is not drawn.

    The bars on the left are standard deviations over seeds, those on the right go from the least to
    the largest client. An axis is logarithmic where the largest value is above ten times the
    smallest.
    """
    layout, found = table.layout, measured(table.lines, "client")
    found = found[found["metric"].isin(table.metrics) & found["row"].isin(layout.rows)]
    clients = [client for client in found["client"].unique() if client != AVERAGE]
    if not clients:
        return
    looks = _series(layout, found)
    have = found.groupby("metric").apply(lambda of: of.groupby(["row", "column"]).ngroups)
    shown = [m for m in table.metrics if have.get(m, 0) > (1 if have.max() > 1 else 0)]
    need = 0.4 + 0.33 * max(len(clients), len(looks))
    figure, panels = page([2] * len(shown), [need] * len(shown), 1.9)
    for metric, (left, right) in zip(shown, panels, strict=True):
        _one_metric(left, right, found[found["metric"] == metric], looks, clients)
        left.set_ylabel(scale_of(metric, layout.unit).title)
    panels[0][0].set_title("each client")
    panels[0][1].set_title("mean, range")
    panels[-1][0].set_xlabel("client")
    finish(figure, layout, path)


def _series(layout: Layout, found: pd.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    """How each row in each column is drawn, in the order of rows; its label tells its columns apart
    where it is in several.
    """
    series: dict[tuple[str, str], dict[str, Any]] = {}
    looks = looks_of(layout)
    for row in layout.rows:
        columns = found.loc[found["row"] == row, "column"].unique()
        every = list(map(parse_column, columns))
        for column, pairs in zip(columns, every, strict=True):
            apart = [f"{k} {v}" for k, v in pairs.items() if any(o.get(k) != v for o in every)]
            label = ", ".join([row_title(layout, row), *apart])
            look = {"fmt": looks[row].marker, "elinewidth": 0.8, "color": looks[row].colour}
            hollow = {} if column == columns[0] else {"markerfacecolor": "white"}
            series[row, column] = {**look, **hollow, "label": label}
    return series


def _one_metric(
    left: Axes,
    right: Axes,
    found: pd.DataFrame,
    looks: Mapping[tuple[str, str], Mapping[str, Any]],
    clients: Sequence[str],
) -> None:
    """By series, the mean and deviation of every client and of `AVERAGE`, in two panels."""
    right.sharey(left)
    by_client = dict(iter(found.set_index("client").groupby(["row", "column"])))
    series = [place for place in looks if place in by_client]
    width = 0.6 / max(1, len(series) - 1)
    for position, place in enumerate(series):
        points = by_client[place].reindex([*clients, AVERAGE])
        each, mean = points.loc[list(clients)], points["value"].to_numpy(float)[-1]
        x = np.arange(len(clients)) + (position - (len(series) - 1) / 2) * width
        left.errorbar(x, each["value"], yerr=spread_bars(each["std"]), **looks[place])
        mean = each["value"].mean() if np.isnan(mean) else mean
        around = [[mean - each["value"].min()], [each["value"].max() - mean]]
        right.errorbar([position], [mean], yerr=around, **looks[place])
    if 0 < 10 * found["value"].min() < found["value"].max():
        left.set_yscale("log")
    else:
        left.set_ylim(0, 1.06 * max(ends(found)))
    left.set_xticks(range(len(clients)), clients)
    right.set_xticks([])
    right.set_xlim(-0.7, len(series) - 0.3)
    spec = right.get_subplotspec()
    right.tick_params(labelleft=spec is None or spec.is_first_col())
    for axis in (left, right):
        axis.grid(axis="y")
