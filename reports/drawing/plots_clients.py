"""Plots of clients: what each holds, and how much of each leaks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from reports.drawing.figures import OWN, colour, finish, number_or_nan, save, spread_bars
from reports.tables.table import Layout, Line, row_title
from reports.tables.units import scale_of
from results.published import parse_column


def partition_plot(counts: Mapping[str, np.ndarray], path: Path, title: str) -> None:
    """Clients x classes bubble plots, a panel per partition: counts (clients, classes), area by
    samples.
    """
    figure, axes = plt.subplots(1, len(counts), figsize=(3.1 * len(counts), 3.3), squeeze=False)
    largest = max(int(matrix.max()) for matrix in counts.values())
    for axis, (name, matrix) in zip(axes[0], counts.items(), strict=True):
        clients, classes = np.nonzero(matrix)
        axis.scatter(
            clients, classes, s=90 * matrix[clients, classes] / largest, color=OWN, linewidths=0
        )
        axis.set_title(name, fontsize=9)
        axis.set_xlabel("client", fontsize=8)
        axis.set_xticks(range(0, len(matrix), max(1, len(matrix) // 10)))
        axis.set_yticks(
            range(matrix.shape[1]) if matrix.shape[1] <= 20 else range(0, matrix.shape[1], 10)
        )
        axis.tick_params(labelsize=7)
        axis.margins(0.08)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0][0].set_ylabel("class", fontsize=8)
    figure.suptitle(f"{title} (largest bubble: {largest} samples)", fontsize=9)
    figure.tight_layout()
    save(figure, path)


AVERAGE = "average"
"""The client of a row's mean over clients."""


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
    figure, (left, right) = plt.subplots(
        1,
        2,
        figsize=(1.6 + 0.5 * len(clients) + 0.5 * len(rows) + 1.2, 3.1),
        sharey=True,
        width_ratios=(len(clients) + 1.0, max(1.5, 0.8 * len(rows))),
    )
    width = 0.6 / max(1, len(rows) - 1)
    for position, row in enumerate(rows):
        look: dict[str, Any] = {
            "fmt": "s" if row in layout.oracles else "o",
            "ms": 5,
            "capsize": 2,
            "elinewidth": 1,
            "color": colour(layout, row),
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
    left.set_ylabel(scale_of(metric, layout.unit).title, fontsize=9)
    left.set_xticks(range(len(clients)), clients, fontsize=8)
    left.set_xlabel("client", fontsize=8)
    left.set_title("(a) each client", fontsize=9)
    right.set_xticks([])
    right.set_xlim(-0.7, len(rows) - 0.3)
    right.set_title("(b) mean and range of clients", fontsize=9)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_axisbelow(True)
        axis.grid(axis="y", alpha=0.3)
        axis.tick_params(labelsize=8)
    finish(figure, [left, right], layout, path)
