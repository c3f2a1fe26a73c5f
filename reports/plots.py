"""Plots of tables and partitions, as PNG."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import matplotlib
import numpy as np

from reports.table import Layout, Line, Panel, by_cell, measured_panels, row_title
from results.files import write_atomic
from results.published import parse_column

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = ("#9aa5b1", "#6b8e3f", "#c9b48a", "#4c9f9a", "#d0a0c8", "#c05a3c", "#7a5ca8", "#b8860b", "#444444", "#87a7c7")
OWN = "#2f5d9b"
"""The method under test stands out; the others are told apart in grey and by most eyes."""


def colour(layout: Layout, row: str) -> str:
    """The row's colour, the same in every panel."""
    return OWN if row == layout.own else COLOURS[list(layout.rows).index(row) % len(COLOURS)]


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG in one step and forget it."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)
    write_atomic(path, buffer.getvalue())


def _float(text: str) -> float:
    return float(text) if text else math.nan


def _frame(count: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    across = 2 if count == 4 else min(count, 3)
    down = -(-count // across)
    figure, axes = plt.subplots(down, across, figsize=(width * across, height * down + 0.9), squeeze=False, sharey=True)
    flat = [axis for line in axes for axis in line]
    for axis in flat[count:]:
        axis.set_visible(False)
    for axis in flat:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", alpha=0.3)
        axis.set_axisbelow(True)
    return figure, flat[:count]


def _finish(figure: Figure, axes: Sequence[Axes], layout: Layout, ylabel: str, path: Path) -> None:
    for axis in axes:
        place = axis.get_subplotspec()
        if place is not None and place.is_first_col():
            axis.set_ylabel(ylabel)
    handles: dict[str, Artist] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.suptitle(f"{layout.title}. {layout.caption}\n{'; '.join(layout.labels)}", fontsize=9)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    if "published" in handles:
        handles["published"] = handles.pop("published")  # last
    columns = min(6, len(handles))
    figure.legend(list(handles.values()), list(handles), loc="lower center", ncol=columns, fontsize=8, frameon=False)
    save(figure, path)


def table_plot(layout: Layout, lines: Sequence[Line], path: Path, metric: str) -> None:
    """Bars per column, or lines along the layout's horizontal key; published values as open diamonds."""
    cells = by_cell(lines)
    shown = measured_panels(layout, cells)
    # A line plot needs a numeric axis; a panel is drawn for every combination of the other keys.
    draw: Callable[[Axes, Panel, Mapping[tuple[str, str], Line], Layout], None] = _lines if layout.x_axis else _bars
    figure, axes = _frame(len(shown), 4.6 if not layout.x_axis else 3.4, 2.9)
    for axis, panel in zip(axes, shown, strict=True):
        draw(axis, panel, cells, layout)
        axis.set_title(panel.title, fontsize=9)
        axis.set_ylim(0, 1.02)
    _finish(figure, axes, layout, metric, path)


def _series(panel: Panel, cells: Mapping[tuple[str, str], Line], row: str, name: str) -> list[float]:
    return [
        _float(line[name]) if (line := cells.get((row, column))) is not None and line["status"] == "ok" else math.nan
        for column in panel.columns.values()
    ]


def _bars(axis: Axes, panel: Panel, cells: Mapping[tuple[str, str], Line], layout: Layout) -> None:
    rows = [row for row in layout.rows if not np.isnan(_series(panel, cells, row, "value")).all()]
    width = 0.82 / max(1, len(rows))
    for position, row in enumerate(rows):
        x = np.arange(len(panel.columns)) + (position - (len(rows) - 1) / 2) * width
        spread = np.nan_to_num(_series(panel, cells, row, "std"))
        hatch = "///" if row in layout.oracles else None
        axis.bar(
            x, _series(panel, cells, row, "value"), width, yerr=spread if spread.any() else None, color=colour(layout, row),
            hatch=hatch, edgecolor="white", linewidth=0.4, label=row_title(layout, row), capsize=2,
        )  # fmt: skip
        published = _series(panel, cells, row, "published")
        axis.plot(x, published, "D", mfc="none", mec="black", ms=3.6, mew=0.8, label="published", ls="none")
    axis.set_xticks(range(len(panel.columns)), list(panel.columns), fontsize=8)
    axis.set_xlim(-0.6, len(panel.columns) - 0.4)


def _lines(axis: Axes, panel: Panel, cells: Mapping[tuple[str, str], Line], layout: Layout) -> None:
    x = [float(value) for value in panel.columns]
    for row in layout.rows:
        values = _series(panel, cells, row, "value")
        if all(math.isnan(v) for v in values):
            continue
        style = "--" if row in layout.oracles else "-"
        spread = np.nan_to_num(_series(panel, cells, row, "std"))
        axis.errorbar(
            x, values, yerr=spread if spread.any() else None, color=colour(layout, row), ls=style, marker="o", ms=3.5, capsize=2,
            label=row_title(layout, row),
        )  # fmt: skip
        published = _series(panel, cells, row, "published")
        axis.plot(x, published, "D", mfc="none", mec=colour(layout, row), ms=4, mew=0.9, ls="none")
    axis.plot([], [], "D", mfc="none", mec="black", ms=4, ls="none", label="published")
    axis.set_xticks(x)
    axis.set_xlabel(layout.x_axis, fontsize=8)


def curve_plot(layout: Layout, lines: Sequence[Line], path: Path, metric: str, first: Sequence[str]) -> None:
    """Curves over epochs, a panel per column: the rows in `first` (clients), and after their end the other rows."""
    curves: dict[str, dict[str, dict[int, tuple[float, float]]]] = {}
    for line in lines:
        if line["status"] != "ok":
            continue
        keys = parse_column(line["column"])
        epoch = int(keys.pop("epoch"))
        column = " ".join(keys.values())
        point = (float(line["value"]), _float(line["std"]))
        curves.setdefault(column, {}).setdefault(line["row"], {})[epoch] = point
    if not curves:
        return
    figure, axes = _frame(len(curves), 3.6, 2.7)
    for axis, (column, rows) in zip(axes, curves.items(), strict=True):
        offset = max((max(points) for row, points in rows.items() if row in first), default=0)
        for row in layout.rows:
            if row not in rows:
                continue
            start = 0 if row in first else offset
            epochs = sorted(rows[row])
            x = np.array(epochs) + start
            y = np.array([rows[row][e][0] for e in epochs])
            s = np.nan_to_num([rows[row][e][1] for e in epochs])
            own = colour(layout, row)
            axis.plot(x, y, color=own, ls="--" if row in layout.oracles else "-", marker=".", label=row_title(layout, row))
            if s.any():
                axis.fill_between(x, y - s, y + s, color=own, alpha=0.2)
        if offset:
            axis.axvline(offset + 0.5, color="black", lw=0.6, ls=":")
        axis.set_title(column, fontsize=9)
        axis.set_xlabel("epoch (clients, then global model)", fontsize=8)
        axis.set_ylim(0, 1.02)
    _finish(figure, axes, layout, metric, path)


def partition_plot(counts: Mapping[str, np.ndarray], path: Path, title: str) -> None:
    """Clients x classes bubble plots, a panel per partition: counts (clients, classes), area by samples."""
    figure, axes = plt.subplots(1, len(counts), figsize=(3.1 * len(counts), 3.3), squeeze=False)
    largest = max(int(matrix.max()) for matrix in counts.values())
    for axis, (name, matrix) in zip(axes[0], counts.items(), strict=True):
        clients, classes = np.nonzero(matrix)
        axis.scatter(clients, classes, s=90 * matrix[clients, classes] / largest, color=OWN, linewidths=0)
        axis.set_title(name, fontsize=9)
        axis.set_xlabel("client", fontsize=8)
        axis.set_xticks(range(0, len(matrix), max(1, len(matrix) // 10)))
        axis.set_yticks(range(matrix.shape[1]) if matrix.shape[1] <= 20 else range(0, matrix.shape[1], 10))
        axis.tick_params(labelsize=7)
        axis.margins(0.08)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0][0].set_ylabel("class", fontsize=8)
    figure.suptitle(f"{title} (largest bubble: {largest} samples)", fontsize=9)
    figure.tight_layout()
    save(figure, path)
