"""Heat maps: what was trained here and tested there, and which teachers were selected when (FedSA's
Figure 4a).
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from fedtables.metrics.names import facts
from fedtables.reports.drawing.figures import SECTION, TICK, finish, page, styled
from fedtables.reports.drawing.frames import measured
from fedtables.reports.drawing.plots import table_plot
from fedtables.reports.tables.table import (
    MARK,
    Line,
    ShownTable,
    cut_short,
    heading,
    left_out,
    row_title,
)
from fedtables.reports.tables.teachers import SELECTED, TRANSFERABILITY
from fedtables.reports.tables.units import scale_of
from fedtables.results.published import parse_column
from fedtables.results.store import records_of

SITES = ("train", "test")
"""Column keys of a matrix, down and across."""
HEAT = "Blues"
"""One hue, light to dark: its order is seen with any colour vision, and in grey."""
DARK = 0.6
"""Share of the colours above which text is white."""
CELL, WIDEST = 0.25, 5.8
"""Inches of a selection at most, and of a panel's selections together."""


def is_matrix(lines: pd.DataFrame) -> bool:
    """Whether the lines are of one row, and their columns those of more than one value of both
    `SITES`.
    """
    columns = pd.DataFrame([parse_column(column) for column in lines["column"]])
    known = set(columns) == set(SITES) and columns.notna().all(axis=None)
    return bool(known and lines["row"].nunique() == 1 and (columns.nunique() > 1).all())


@styled
def site_plot(table: ShownTable, path: Path) -> None:
    """One row's models by the site that trained them, down, and the site that tests them, across; a
    table of anything else is drawn as all are.

    A panel per metric, darker where it is better, with a mark where it was cut short; in brackets
    what is printed.
    """
    if not is_matrix(table.lines):
        table_plot(table, path)
        return
    layout, keys, found = table.layout, SITES, measured(table.lines, *SITES)
    metrics = found["metric"].unique()
    height = 0.5 + 0.3 * found[keys[0]].nunique()
    figure, [axes] = page([len(metrics)], [1.55], height, 0.75)
    for axis, metric in zip(axes, metrics, strict=True):
        scale, of_it = scale_of(metric, layout.unit), found[found["metric"] == metric]
        told = [_text(line, max(1, scale.digits - 1)) for line in records_of(of_it)]
        values, texts = (
            of_it.assign(text=told)
            .pivot(index=keys[0], columns=keys[1], values=name)
            .reindex(index=found[keys[0]].unique(), columns=found[keys[1]].unique())
            for name in ("value", "text")
        )
        known = of_it["value"].dropna()
        ends = (known.min(), known.max()) if len(known) else (0.0, 1.0)
        heat(axis, values, texts, ends, TICK - 1, HEAT + "_r" * (scale.sign < 0))
        axis.set_title(scale.title)
        axis.set_xlabel(keys[1])
        axis.tick_params(labelleft=axis is axes[0])
    axes[0].set_ylabel(keys[0])
    if any(map(cut_short, table.cells)):
        axes[0].plot([], [], **SECTION)  # for the legend
    finish(figure, layout, path)


def _text(line: Line, digits: int) -> str:
    """A number, marked where its run was cut short, of how many values it is, and what is
    printed.
    """
    value, printed = float(line["value"]), float(line["published"])
    if math.isnan(value):
        return ""
    told = [f"{value:.{digits}f}" + (f" {MARK}" if cut_short(line) else ""), left_out(line)]
    told += [] if math.isnan(printed) else [f"({printed:.{digits}f})"]
    return "\n".join(filter(None, told))


def heat(
    axis: Axes,
    values: pd.DataFrame,
    texts: pd.DataFrame,
    ends: tuple[float, float],
    size: float,
    colours: str = HEAT,
) -> AxesImage:
    """Values (down, across) as colours between two `ends`, with a text in each; grey where there is
    none. Lines and columns are named at the axes.
    """
    axis.set_facecolor("#f0f0f0")
    plain: Any = {"aspect": "auto", "interpolation": "nearest"}
    image = axis.imshow(values, colours, vmin=ends[0], vmax=ends[1], **plain)
    shares = (values - ends[0]) / ((ends[1] - ends[0]) or math.inf)
    dark = ((1 - shares if colours.endswith("_r") else shares) > DARK).to_numpy()
    for (row, column), text in np.ndenumerate(texts.to_numpy()):
        if isinstance(text, str) and text:
            place: Any = {"ha": "center", "va": "center", "fontsize": size}
            axis.text(column, row, text, color="white" if dark[row, column] else "black", **place)
    axis.set_yticks(range(len(values)), map(str, values.index))
    step = max(1, len(values.columns) // 10)
    axis.set_xticks(range(0, len(values.columns), step), map(str, values.columns[::step]))
    return image


@styled
def selection_plot(table: ShownTable, path: Path) -> None:
    """Teachers by selections, darker where the transferability is higher; the number is how often
    the teacher was drawn.

    A panel per row and column of the table. Where no number stands, the teacher was not drawn; with
    several seeds it is their mean. A teacher that a selection did not score is grey.
    """
    layout, found = table.layout, measured(table.lines, "selection", "teacher")
    if found.empty:
        return
    found = found.astype({"selection": int, "teacher": int})
    teachers, selections = (range(1, found[key].max() + 1) for key in ("teacher", "selection"))
    side = min(CELL, WIDEST / len(selections))
    panels = found.groupby(["row", "column"], sort=False)
    need = max(1.6, side * len(selections))
    figure, [axes] = page([len(panels)], [need], 0.6 + 0.15 * len(teachers), 1.0)
    scores = found.loc[found["metric"] == TRANSFERABILITY, "value"]
    ends = min(0.0, scores.min()), max(1.0, scores.max())
    for axis, ((row, column), cells) in zip(axes, panels, strict=True):
        of_metric = {
            metric: cells[cells["metric"] == metric]
            .pivot(index="teacher", columns="selection", values="value")
            .reindex(index=teachers, columns=selections)
            for metric in (TRANSFERABILITY, SELECTED)
        }
        texts = of_metric[SELECTED].map(lambda drawn: f"{round(drawn, 1):g}" if drawn > 0 else "")
        image = heat(axis, of_metric[TRANSFERABILITY], texts, ends, TICK * side / CELL)
        name = heading(parse_column(str(column)))
        several = found["row"].nunique() > 1
        axis.set_title(f"{row_title(layout, str(row))}: {name}" if several else name)
        axis.set_xlabel("selection (number: times drawn)")
    axes[0].set_ylabel("teacher")
    bar = figure.colorbar(image, ax=axes, aspect=25, pad=0.02)
    bar.set_label(facts(TRANSFERABILITY).title)
    bar.outline.set_linewidth(0.4)
    finish(figure, layout, path)
