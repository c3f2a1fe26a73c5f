"""Plots of clients: what each holds, and how much of each leaks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.lines import Line2D

from reports.drawing.figures import Texts, finish, number_or_nan, page, spread_bars, styled
from reports.drawing.palette import NEUTRAL, looks
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
def leakage_plot(layout: Layout, lines: Sequence[Line], path: Path, metric: str) -> None:
    """A metric (a) of every client and (b) on average, from the columns `client=1`, ...,
    `client=average` of the table.

    The bars of (a) are standard deviations over seeds, those of (b) go from the least to the
    largest client. The axis is logarithmic where the largest value is above ten times the smallest.
    """
    values: dict[str, dict[str, tuple[float, float]]] = {}
    for line in lines:
        client = parse_column(line["column"]).get("client")
        if line["status"] == "ok" and line["metric"] == metric and client is not None:
            values.setdefault(line["row"], {})[client] = (
                float(line["value"]),
                number_or_nan(line["std"]),
            )
    rows = [row for row in layout.rows if row in values]
    clients = list(
        dict.fromkeys(client for row in rows for client in values[row] if client != AVERAGE)
    )
    if not clients:
        return
    figure, [[left], [right]] = page([[0.3 + 0.33 * len(clients)], [0.5 + 0.25 * len(rows)]], 1.9)
    right.sharey(left)
    width = 0.6 / max(1, len(rows) - 1)
    row_looks = looks(layout)
    for position, row in enumerate(rows):
        look: dict[str, Any] = {
            "fmt": row_looks[row].marker,
            "elinewidth": 0.8,
            "color": row_looks[row].colour,
            "label": row_title(layout, row),
        }
        points = [values[row].get(client, (math.nan, math.nan)) for client in clients]
        x = np.arange(len(clients)) + (position - (len(rows) - 1) / 2) * width
        left.errorbar(
            x,
            [value for value, _ in points],
            yerr=spread_bars(np.array([std for _, std in points])),
            **look,
        )
        finite = np.array([value for value, _ in points if math.isfinite(value)])
        average = values[row].get(AVERAGE, (float(finite.mean()), math.nan))[0]
        right.errorbar(
            [position], [average], yerr=[[average - finite.min()], [finite.max() - average]], **look
        )
    everything = [value for row in rows for value, _ in values[row].values()]
    if min(everything) > 0 and max(everything) > 10 * min(everything):
        left.set_yscale("log")
    else:
        left.set_ylim(bottom=0)
    left.set_ylabel(scale_of(metric, layout.unit).title)
    left.set_xticks(range(len(clients)), clients)
    left.set_xlabel("client")
    left.set_title("(a) each client")
    right.set_xticks([])
    right.set_xlim(-0.7, len(rows) - 0.3)
    right.set_title("(b) mean, range")
    right.tick_params(labelleft=False)
    for axis in (left, right):
        axis.grid(axis="y")
    finish(figure, [left, right], layout, path)
