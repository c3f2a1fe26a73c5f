"""Plots of teachers: transfer accuracy against similarity (FedSA's Table 3), and a heat map of
selections (its Figure 4a).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from metrics.names import facts
from reports.drawing.figures import PUBLISHED, TICK, finish, number_or_nan, page, styled
from reports.drawing.palette import NEUTRAL
from reports.drawing.plots import PRINTED
from reports.tables.table import Layout, Line, heading, row_title
from reports.tables.teachers import SELECTED, TRANSFERABILITY, Correlation, printed_correlations
from reports.tables.units import scale_of
from results.published import format_column, parse_column, published_table

APART = 2
"""Published values have panels of their own where one axis for both would be so many times as long
as the longer of two."""
HEAT = "Blues"
"""One hue, light to dark: its order is seen with any colour vision, and in grey."""


DARK = 0.6
"""Share of the colours from which on numbers are white."""
CELL, WIDEST, RIGHT = 0.25, 5.8, 1.0
"""Inches of a cell at most, of a panel's cells together, and of what stands beside them."""


@dataclass(frozen=True)
class Mark:
    """A teacher in the plane of two metrics, each with its spread over seeds or not a number."""

    row: str
    x: tuple[float, float]
    y: tuple[float, float]

    @property
    def name(self) -> str:
        """`4` of `teacher-4`."""
        return self.row.rpartition("-")[2]


@styled
def transferability_plot(
    layout: Layout,
    lines: Sequence[Line],
    path: Path,
    metrics: Sequence[str],
    correlations: Mapping[str, Correlation],
) -> None:
    """The first metric (transfer accuracy) against the second (similarity), a mark per teacher and
    a panel per column.

    Published values are open marks, in panels of their own below where their accuracies lie
    elsewhere. The `correlations`, by column, stand in the panels' titles beside the printed ones.
    """
    ours, printed = _measured(lines, metrics), _printed(layout.key, metrics)
    columns = [column for column in ours if ours[column]]
    if not columns:
        return
    theirs = {column: printed[column] for column in columns if column in printed}
    apart = any(
        _span(ours[c] + theirs[c]) > APART * max(_span(ours[c]), _span(theirs[c])) for c in theirs
    )
    figure, axes = page([[2.6] * len(columns)] * (2 if apart else 1), 2.4)
    coefficients = printed_correlations(layout.key, metrics)
    for number, column in enumerate(columns):
        beside = theirs.get(column, [])
        title, title_beside = (
            _title(correlations.get(column)),
            _title(coefficients.get(column), "published: ") if beside else "",
        )
        name = heading(parse_column(column))
        if apart:
            _scatter(axes[0][number], ours[column], [], name, title)
            _scatter(axes[1][number], [], beside, name, title_beside)
            axes[1][number].set_visible(bool(beside))
        else:
            _scatter(axes[0][number], ours[column], beside, name, title, title_beside)
    accuracy, similarity = (scale_of(metric, layout.unit).title for metric in metrics)
    shown = [axis for row in axes for axis in row if axis.get_visible()]
    for axis in shown:
        axis.set_xlabel(similarity)
        axis.set_ylabel(accuracy)
    finish(figure, shown, layout, path)


def _measured(lines: Sequence[Line], metrics: Sequence[str]) -> dict[str, list[Mark]]:
    values: dict[str, dict[str, dict[str, tuple[float, float]]]] = {}
    for line in lines:
        if line["status"] == "ok" and line["metric"] in metrics:
            rows = values.setdefault(line["column"], {}).setdefault(line["row"], {})
            rows[line["metric"]] = (float(line["value"]), number_or_nan(line["std"]))
    return {column: _marks(rows, metrics) for column, rows in values.items()}


def _printed(table: str, metrics: Sequence[str]) -> dict[str, list[Mark]]:
    values: dict[str, dict[str, dict[str, tuple[float, float]]]] = {}
    for cell in published_table(table):
        if cell.metric in metrics and isinstance(cell.value, float):
            rows = values.setdefault(cell.column, {}).setdefault(cell.row, {})
            rows[cell.metric] = (cell.value, math.nan if cell.std is None else cell.std)
    return {column: _marks(rows, metrics) for column, rows in values.items()}


def _marks(
    rows: Mapping[str, Mapping[str, tuple[float, float]]], metrics: Sequence[str]
) -> list[Mark]:
    return [
        Mark(row, v[metrics[1]], v[metrics[0]]) for row, v in rows.items() if len(v) == len(metrics)
    ]


def _span(marks: Sequence[Mark]) -> float:
    heights = [mark.y[0] for mark in marks if math.isfinite(mark.y[0])]
    return max(heights, default=0) - min(heights, default=0)


def _title(correlation: Correlation | None, what: str = "") -> str:
    if correlation is None:
        return ""
    rho, r = correlation.coefficients
    return f"{what}Spearman ρ = {rho}, Pearson r = {r} (n = {correlation.teachers})" + (
        f"\n{correlation.means}" if correlation.means else ""
    )


def _scatter(axis: Axes, ours: Sequence[Mark], published: Sequence[Mark], *titles: str) -> None:
    measured: dict[str, Any] = {
        "fmt": "o",
        "color": NEUTRAL,
        "elinewidth": 0.6,
        "label": "measured",
    }
    right: dict[str, Any] = {"xytext": (4, 3), "color": NEUTRAL}
    left: dict[str, Any] = {
        "xytext": (-4, -9),
        "color": "#57606a",
        "ha": "right",
    }  # so that the two do not meet
    for marks, look, name in (
        (published, {**PRINTED, "label": PUBLISHED}, left),
        (ours, measured, right),
    ):
        if not marks:
            continue
        # An error bar that is not a number is not drawn.
        (x, dx), (y, dy) = (
            np.array([mark.x for mark in marks]).T,
            np.array([mark.y for mark in marks]).T,
        )
        axis.errorbar(x, y, xerr=dx, yerr=dy, **look)
        for mark in marks:
            place = (mark.x[0], mark.y[0])
            axis.annotate(mark.name, place, textcoords="offset points", fontsize=TICK, **name)
    axis.set_xlim(-0.07, 1.07)
    axis.margins(y=0.12)
    axis.grid()
    axis.set_title("\n".join(filter(None, titles)))


@styled
def selection_plot(layout: Layout, lines: Sequence[Line], path: Path) -> None:
    """Teachers by selections, darker where the transferability is higher; the number is how often
    the teacher was drawn.

    A panel per row and column of the table. Where no number stands, the teacher was not drawn; with
    several seeds it is their mean. A teacher that a selection did not score is grey.
    """
    panels: dict[tuple[str, str], dict[tuple[int, int], dict[str, float]]] = {}
    for line in lines:
        keys = parse_column(line["column"])
        if line["status"] == "ok" and {"selection", "teacher"} <= keys.keys():
            place = int(keys.pop("teacher")), int(keys.pop("selection"))
            cells = panels.setdefault((line["row"], format_column(dict(keys))), {})
            cells.setdefault(place, {})[line["metric"]] = float(line["value"])
    if not panels:
        return
    places = [place for cells in panels.values() for place in cells]
    teachers, selections = (
        max(teacher for teacher, _ in places),
        max(selection for _, selection in places),
    )
    side = min(CELL, WIDEST / selections)
    needs = max(1.6, side * selections)
    figure, [axes] = page([[needs] * len(panels)], 0.6 + 0.15 * teachers, RIGHT)
    several = len({row for row, _ in panels}) > 1
    scores = [
        cell[TRANSFERABILITY]
        for cells in panels.values()
        for cell in cells.values()
        if TRANSFERABILITY in cell
    ]
    low, high = min([0.0, *scores]), max([1.0, *scores])
    for axis, ((row, column), cells) in zip(axes, panels.items(), strict=True):
        image = _heat(axis, cells, (teachers, selections), (low, high), TICK * side / CELL)
        name = heading(parse_column(column))
        axis.set_title(f"{row_title(layout, row)}: {name}" if several else name)
        axis.set_xlabel("selection (number: times drawn)")
    axes[0].set_ylabel("teacher")
    bar = figure.colorbar(image, ax=axes, aspect=25, pad=0.02)
    bar.set_label(facts(TRANSFERABILITY).title)
    bar.outline.set_linewidth(0.4)
    finish(figure, axes, layout, path)


def _heat(
    axis: Axes,
    cells: Mapping[tuple[int, int], Mapping[str, float]],
    shape: tuple[int, int],
    span: tuple[float, float],
    size: float,
) -> AxesImage:
    scores = np.full(shape, np.nan)
    for (teacher, selection), cell in cells.items():
        scores[teacher - 1, selection - 1] = cell.get(TRANSFERABILITY, math.nan)
    axis.set_facecolor("#f0f0f0")
    ends = (0.5, shape[1] + 0.5, shape[0] + 0.5, 0.5)
    image = axis.imshow(
        scores,
        cmap=HEAT,
        vmin=span[0],
        vmax=span[1],
        aspect="auto",
        extent=ends,
        interpolation="nearest",
    )
    for (teacher, selection), cell in cells.items():
        drawn, score = cell.get(SELECTED, 0.0), cell.get(TRANSFERABILITY, math.nan)
        if drawn:
            dark = (score - span[0]) / (span[1] - span[0]) > DARK
            ink = "white" if dark else "black"
            axis.text(
                selection,
                teacher,
                f"{round(drawn, 1):g}",
                ha="center",
                va="center",
                fontsize=size,
                color=ink,
            )
    axis.set_yticks(range(1, shape[0] + 1))
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    return image
