"""Plots of tables: bars per column, rows below each other, or lines."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd

from metrics.names import TEXTS
from reports.drawing.figures import (
    COLOURS,
    OWN,
    colour,
    finish,
    frame,
    limits,
    number_or_nan,
    spread_bars,
    vertical_axis,
)
from reports.tables.table import Block, Layout, Line, Panel, blocks, is_number, row_title

matplotlib.use("Agg")
from matplotlib.axes import Axes

WIDE = 10
"""Ratio of the largest to the smallest place of a line plot above which its axis is logarithmic."""


def table_plot(layout: Layout, lines: Sequence[Line], path: Path) -> None:
    """The panels of every metric; published values as open diamonds.

    Bars per column, or lines along the layout's horizontal key; a table of one column has its rows
    on the vertical axis.
    """
    numbers = [line for line in lines if line["metric"] not in TEXTS]
    metric_blocks = [
        replace(block, panels=[_attempted(panel, block, layout) for panel in block.panels])
        for block in blocks(layout, pd.DataFrame(numbers))
        if block.panels
    ]
    if not metric_blocks:
        return
    single = not layout.x_axis and all(
        len(panel.columns) == 1 for block in metric_blocks for panel in block.panels
    )
    height = 0.3 * len(layout.rows) + 1.0 if single else 2.9
    # Room for the names of the rows, for a curve, or for the groups of bars.
    if single:
        width = 3.4 + 0.06 * max(len(row_title(layout, row)) for row in layout.rows) / min(
            len(metric_blocks), 2
        )
    elif layout.x_axis and all(
        is_number(name)
        for block in metric_blocks
        for panel in block.panels
        for name in panel.columns.values()
    ):
        width = 3.4
    else:
        width = max(
            4.6,
            *(
                _bars_width(panel, len(layout.rows))
                for block in metric_blocks
                for panel in block.panels
            ),
        )
    figure, axes = frame([len(block.panels) for block in metric_blocks], width, height)
    for block, places in zip(metric_blocks, axes, strict=True):
        span = limits(_drawn(layout, block), block.scale.bounds)
        for number, (axis, panel) in enumerate(zip(places, block.panels, strict=True)):
            if single:
                _rows(axis, panel, block, layout, span)
            elif layout.x_axis and all(is_number(name) for name in panel.columns.values()):
                _lines(axis, panel, block, layout)
            else:
                _bars(axis, panel, block, layout, span)
            if not single:
                vertical_axis(axis, span, block.scale.title, number == 0)
            axis.set_title(
                ", ".join(filter(None, [panel.title, *(panel.columns.values() if single else ())])),
                fontsize=9,
            )
    finish(figure, list(itertools.chain(*axes)), layout, path)


def _attempted(panel: Panel, block: Block, layout: Layout) -> Panel:
    """The panel without columns that no cell was run in: a picture of a part of a table has no
    empty places.
    """
    kept = {
        c: name
        for c, name in panel.columns.items()
        if any((row, c) in block.cells for row in layout.rows)
    }
    return replace(panel, columns=kept)


LONG = 10
"""Characters of a heading above which the headings of many bars are slanted rather than given
room."""


def _bars_width(panel: Panel, rows: int) -> float:
    """Inches that keep the bars of a panel distinct and its headings apart."""
    if _slanted(panel):
        return 1.0 + len(panel.columns) * max(0.16 * rows, 0.3)
    return 1.0 + len(panel.columns) * max(0.16 * rows, 0.075 * _longest(panel) + 0.15)


def _longest(panel: Panel) -> int:
    return max(len(part) for name in panel.columns.values() for part in name.split(", "))


def _slanted(panel: Panel) -> bool:
    return len(panel.columns) > 4 and _longest(panel) > LONG


def _series(panel: Panel, block: Block, row: str, name: str) -> np.ndarray:
    lines = (block.cells.get((row, column)) for column in panel.columns)
    return np.array(
        [
            number_or_nan(line[name]) if line is not None and line["status"] == "ok" else math.nan
            for line in lines
        ]
    )


def _drawn(layout: Layout, block: Block) -> list[float]:
    """All that the axis of a metric has to show: values and printed ones, with their spreads."""
    ends: list[float] = []
    for panel, row in itertools.product(block.panels, layout.rows):
        for name, spread in (("value", "std"), ("published", "published_std")):
            values, around = (
                _series(panel, block, row, name),
                np.nan_to_num(_series(panel, block, row, spread)),
            )
            ends += [*(values - around), *(values + around)]
    return ends


PUBLISHED: dict[str, Any] = {
    "fmt": "D",
    "mfc": "white",
    "mec": "black",
    "ms": 3.6,
    "mew": 0.8,
    "ecolor": "black",
    "lw": 0.7,
}
"""How a printed value is drawn."""


def _bars(
    axis: Axes, panel: Panel, block: Block, layout: Layout, span: tuple[float, float]
) -> None:
    rows = [row for row in layout.rows if not np.isnan(_series(panel, block, row, "value")).all()]
    width = 0.82 / max(1, len(rows))
    for position, row in enumerate(rows):
        x = np.arange(len(panel.columns)) + (position - (len(rows) - 1) / 2) * width
        values, spread = (
            _series(panel, block, row, "value"),
            spread_bars(_series(panel, block, row, "std")),
        )
        look: dict[str, Any] = {"color": colour(layout, row), "label": row_title(layout, row)}
        if span[0] > 0:  # a bar says nothing on an axis that does not begin at zero
            axis.errorbar(x, values, yerr=spread, fmt="s", ms=5, elinewidth=1, capsize=2, **look)
        else:
            look["hatch"] = "///" if row in layout.oracles else None
            axis.bar(
                x, values, width, yerr=spread, edgecolor="white", linewidth=0.4, capsize=2, **look
            )
        printed = (
            _series(panel, block, row, "published"),
            spread_bars(_series(panel, block, row, "published_std")),
        )
        axis.errorbar(x, printed[0], yerr=printed[1], label="published", **PUBLISHED)
    names = [name.replace(", ", "\n") for name in panel.columns.values()]
    slanted: dict[str, Any] = (
        {"rotation": 35, "ha": "right", "rotation_mode": "anchor"} if _slanted(panel) else {}
    )
    axis.set_xticks(range(len(names)), names, fontsize=8, **slanted)
    axis.set_xlim(-0.6, len(names) - 0.4)


def _rows(
    axis: Axes, panel: Panel, block: Block, layout: Layout, span: tuple[float, float]
) -> None:
    for position, row in enumerate(layout.rows):
        values, spread = (
            _series(panel, block, row, "value"),
            spread_bars(_series(panel, block, row, "std")),
        )
        look: dict[str, Any] = {
            "color": OWN if row == layout.own else COLOURS[0],
            "label": "measured",
        }
        if span[0] > 0:
            axis.errorbar(
                values, [position], xerr=spread, fmt="s", ms=6, elinewidth=1, capsize=2, **look
            )
        else:
            hatch = "///" if row in layout.oracles else None
            axis.barh(
                [position],
                values,
                0.7,
                xerr=spread,
                hatch=hatch,
                edgecolor="white",
                capsize=2,
                **look,
            )
        printed = (
            _series(panel, block, row, "published"),
            spread_bars(_series(panel, block, row, "published_std")),
        )
        axis.errorbar(printed[0], [position], xerr=printed[1], label="published", **PUBLISHED)
    axis.set_yticks(
        range(len(layout.rows)), [row_title(layout, row) for row in layout.rows], fontsize=8
    )
    axis.set_ylim(len(layout.rows) - 0.4, -0.6)
    axis.set_xlim(*span)
    axis.set_xlabel(block.scale.title, fontsize=9)
    axis.grid(axis="x", alpha=0.3)
    place = axis.get_subplotspec()
    if place is not None and not place.is_first_col():
        axis.tick_params(labelleft=False)


def _lines(axis: Axes, panel: Panel, block: Block, layout: Layout) -> None:
    """Lines along the horizontal key; what was measured at infinity, without a limit, is a dotted
    level.
    """
    places = np.array([float(value) for value in panel.columns.values()])
    finite = np.isfinite(places)
    x = places[finite]
    for row in layout.rows:
        values = _series(panel, block, row, "value")
        if np.isnan(values).all():
            continue
        look: dict[str, Any] = {"color": colour(layout, row), "label": row_title(layout, row)}
        style = "--" if row in layout.oracles else "-"
        spread = spread_bars(_series(panel, block, row, "std")[finite])
        axis.errorbar(
            x, values[finite], yerr=spread, ls=style, marker="o", ms=3.5, capsize=2, **look
        )
        for level in values[~finite]:
            axis.axhline(level, color=look["color"], ls=":", lw=1)
        published = _series(panel, block, row, "published")[finite]
        axis.plot(x, published, "D", mfc="none", mec=look["color"], ms=4, mew=0.9, ls="none")
    if any(line["published"] for line in block.cells.values()):
        axis.plot([], [], "D", mfc="none", mec="black", ms=4, ls="none", label="published")
    if not finite.all():
        axis.plot([], [], color="black", ls=":", lw=1, label=f"{layout.x_axis} = inf")
    if len(x) > 1 and x.max() / x.min() > WIDE:
        axis.set_xscale("log")
        axis.minorticks_off()
    axis.set_xticks(x, [f"{value:g}" for value in x])
    axis.set_xlabel(layout.x_axis, fontsize=8)
