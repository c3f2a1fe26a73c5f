"""Plots of tables: bars per column, rows below each other, or lines."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from reports.drawing.figures import (
    CHANCE,
    GUESS,
    LABEL,
    MARGIN,
    PUBLISHED,
    chance_of,
    filled,
    finish,
    limits,
    mark_unsettled,
    note,
    number_or_nan,
    page,
    spread_bars,
    styled,
    vertical_axis,
)
from reports.drawing.palette import Look, looks_of
from reports.drawing.panels import (
    drawn_blocks,
    measured_in,
    panel_names,
    runs_along,
    shared_keys,
    value_of,
)
from reports.tables.table import (
    Block,
    Layout,
    Line,
    Panel,
    cut_short,
    heading,
    is_number,
    left_out,
    row_title,
)

WIDE = 10
"""Ratio of the largest to the smallest place of a line plot above which its axis is logarithmic,
where that keeps neighbours apart."""
FAR = 100
"""Ratio of the largest to the smallest value, of a metric without a natural range, above which its
axis is logarithmic: bars would hide the small ones."""
BAR, ROW = 0.066, 0.155
"""Inches of a bar's width, and of a row's height."""
LETTER = 0.052
"""About how many inches a letter of a label is wide."""
PRINTED: dict[str, Any] = {
    "fmt": "D",
    "mfc": "white",
    "mec": "black",
    "ms": 2.6,
    "mew": 0.6,
    "ecolor": "black",
    "elinewidth": 0.6,
}
"""How a printed value is drawn."""
SPREAD: dict[str, Any] = {"ecolor": "#222222", "elinewidth": 0.7}
"""How a spread over seeds is drawn."""


@styled
def table_plot(layout: Layout, lines: pd.DataFrame, path: Path) -> None:
    """The panels of every metric; published values as open diamonds, what guessing gives as a
    dashed line.

    Bars per column, or lines along the layout's horizontal key; a table of one column has its rows
    on the vertical axis. What is counted is not drawn beside what is measured.
    """
    shown = drawn_blocks(layout, lines)
    if not shown:
        return
    panels = [panel for block in shown for panel in block.panels]
    rows = [row for row in layout.rows if any(measured_in(block, row) for block in shown)]
    along = bool(layout.x_axis) and all(map(runs_along, panels))
    single = not along and all(len(panel.columns) == 1 for panel in panels)
    common = shared_keys(panels) if len(panels) > 1 else {}
    margin = MARGIN
    if along:
        needs, height = [[1.45] * len(block.panels) for block in shown], 1.9
    elif single:
        needs = [[2.0 if len(panels) == 1 else 1.2] * len(block.panels) for block in shown]
        height = ROW * len(rows) + 0.55
        margin = 0.15 + LETTER * max(len(row_title(layout, row)) for row in rows)
    else:
        needs = [_bars_widths(block) for block in shown]
        height = 1.75 + 0.3 * any(map(_slanted, panels))
    figure, axes = page(needs, height, margin)
    for block, places, widths in zip(shown, axes, needs, strict=True):
        far = _far_apart(_ends(layout, block), _bounds(block))
        span = far or limits(_ends(layout, block), _bounds(block))
        names = panel_names(block.panels, common)
        for number, (axis, panel) in enumerate(zip(places, block.panels, strict=True)):
            axis.set_title(filled(names[number], widths[number], LABEL))
            if far is not None and not along:
                (axis.set_xscale if single else axis.set_yscale)("log")
            if single:
                _rows(axis, panel, block, layout, rows, span)
                continue
            (_lines if along else _bars)(axis, panel, block, layout, span)
            vertical_axis(axis, span, block.scale.title, number == 0)
    if layout.title and common:
        layout = replace(layout, labels=(f"{heading(common)} in all panels", *layout.labels))
    finish(figure, layout, path)


def _marks(axis: Axes, lines: Sequence[Line | None], x: Any, y: Any, rotation: float = 0.0) -> None:
    """At the places of a row's lines, which were cut short, and of how many values a mean is that
    leaves some out.
    """
    short = [line is not None and cut_short(line) for line in lines]
    mark_unsettled(axis, x, np.where(short, y, np.nan))
    note(axis, x, y, ["" if line is None else left_out(line) for line in lines], rotation)


def _bounds(block: Block) -> tuple[float, float] | None:
    """The range that an axis shows: from chance where a metric's zero means nothing."""
    bounds, chance = block.scale.bounds, block.scale.chance
    return bounds if bounds is None or chance is None else (chance, bounds[1])


def _series(panel: Panel, block: Block, row: str, name: str) -> np.ndarray:
    """A number of every column of a row; printed ones only where they can be compared."""
    if block.unlike and name.startswith("published"):
        return np.full(len(panel.columns), np.nan)
    lines = (block.cells.get((row, column)) for column in panel.columns)
    return np.array(
        [
            number_or_nan(line[name]) if line is not None and line["status"] == "ok" else math.nan
            for line in lines
        ]
    )


def _ends(layout: Layout, block: Block) -> list[float]:
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


def _far_apart(
    ends: Sequence[float], bounds: tuple[float, float] | None
) -> tuple[float, float] | None:
    """The span of a logarithmic axis, where values without bounds are far apart and all positive;
    it does not begin at zero, so that values are points and no bars.
    """
    finite = [value for value in ends if math.isfinite(value)]
    if bounds is not None or not finite or min(finite) <= 0 or max(finite) < FAR * min(finite):
        return None
    return min(finite) / 2, max(finite) * 2


def _chances(panel: Panel, block: Block, layout: Layout) -> list[float]:
    return [chance_of(layout, block.scale, column) for column in panel.columns]


LONG = 8
"""Characters of a heading above which the headings of many bars are slanted rather than given
room."""


def _group(panel: Panel, block: Block) -> int:
    """Bars of the panel's largest group."""
    rows = {row for row, _ in block.cells}
    return max(sum(bool(value_of(block, row, column)) for row in rows) for column in panel.columns)


def _bars_widths(block: Block) -> list[float]:
    """Inches of each panel that keep its bars distinct, and its headings apart."""
    bars = BAR * max(_group(panel, block) for panel in block.panels) + 0.06
    widths = []
    for panel in block.panels:
        names = 0.2 if _slanted(panel) else 0.06 + LETTER * _longest(panel)
        widths.append(max(0.7, 0.1 + len(panel.columns) * max(bars, names)))
    return widths


def _longest(panel: Panel) -> int:
    return max(len(part) for name in panel.columns.values() for part in name.split(", "))


def _slanted(panel: Panel) -> bool:
    return len(panel.columns) > 4 and _longest(panel) > LONG


def _point(look: Look) -> dict[str, Any]:
    return {"fmt": look.marker, "color": look.colour, "elinewidth": 0.8}


def _fill(look: Look) -> dict[str, Any]:
    return {"color": look.colour, "hatch": look.hatch, "edgecolor": "white", "lw": 0.3}


def _bars(
    axis: Axes, panel: Panel, block: Block, layout: Layout, span: tuple[float, float]
) -> None:
    width = 0.84 / max(_group(other, block) for other in block.panels)
    base = block.scale.chance or 0.0
    values = {row: _series(panel, block, row, "value") for row in layout.rows}
    there = {row: np.isfinite(value) for row, value in values.items()}
    many = sum(there.values(), np.zeros(len(panel.columns), int))
    before = np.zeros(len(panel.columns), int)
    row_looks = looks_of(layout)
    for row, has in there.items():
        if not has.any():
            continue
        look = row_looks[row]
        x = (np.arange(len(panel.columns)) + (before - (many - 1) / 2) * width)[has]
        before = before + has
        spread = spread_bars(_series(panel, block, row, "std")[has])
        named: dict[str, Any] = {"label": row_title(layout, row)}
        if span[0] > base:  # a bar says nothing on an axis that does not begin where it does
            axis.errorbar(x, values[row][has], yerr=spread, **_point(look), **named)
        else:
            heights = values[row][has] - base
            axis.bar(x, heights, width, base, yerr=spread, error_kw=SPREAD, **_fill(look), **named)
        _printed(axis, panel, block, row, x, has)
        lines = [block.cells.get((row, column)) for column in panel.columns]
        _marks(axis, [*itertools.compress(lines, has)], x, values[row][has], 90)
    for x, chance in enumerate(_chances(panel, block, layout)):
        if chance >= span[0]:
            axis.plot([x - 0.5, x + 0.5], [chance] * 2, label=CHANCE, **GUESS)
    names = [name.replace(", ", "\n") for name in panel.columns.values()]
    slanted: dict[str, Any] = (
        {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if _slanted(panel) else {}
    )
    axis.set_xticks(range(len(names)), names, **slanted)
    axis.tick_params(axis="x", length=0)
    axis.set_xlim(-0.52, len(names) - 0.48)


def _printed(
    axis: Axes, panel: Panel, block: Block, row: str, x: np.ndarray, has: np.ndarray
) -> None:
    """A row's printed values above the places of its bars."""
    values = _series(panel, block, row, "published")[has]
    if np.isfinite(values).any():
        spread = spread_bars(_series(panel, block, row, "published_std")[has])
        axis.errorbar(x, values, yerr=spread, label=PUBLISHED, **PRINTED)


def _rows(
    axis: Axes,
    panel: Panel,
    block: Block,
    layout: Layout,
    rows: Sequence[str],
    span: tuple[float, float],
) -> None:
    base = block.scale.chance or 0.0
    row_looks = looks_of(layout, named=True)
    for position, row in enumerate(rows):
        look, value = row_looks[row], _series(panel, block, row, "value")
        if np.isnan(value).all():
            place = axis.get_yaxis_transform()
            axis.text(0.02, position, "–", transform=place, va="center", color="#777777")
            continue
        spread = spread_bars(_series(panel, block, row, "std"))
        if span[0] > base:
            axis.errorbar(value, [position], xerr=spread, **_point(look))
        else:
            axis.barh(
                [position], value - base, 0.72, base, xerr=spread, error_kw=SPREAD, **_fill(look)
            )
        lines = [block.cells.get((row, column)) for column in panel.columns]
        _marks(axis, lines, value, [position])
        printed = _series(panel, block, row, "published")
        if np.isfinite(printed).all():
            around = spread_bars(_series(panel, block, row, "published_std"))
            axis.errorbar(printed, [position], xerr=around, label=PUBLISHED, **PRINTED)
    for chance in _chances(panel, block, layout):
        if chance >= span[0]:
            axis.axvline(chance, label=CHANCE, **GUESS)
    axis.set_yticks(range(len(rows)), [row_title(layout, row) for row in rows])
    axis.tick_params(axis="y", length=0)
    axis.set_ylim(len(rows) - 0.4, -0.6)
    axis.set_xlim(*span)
    axis.set_xlabel(block.scale.title)
    axis.grid(axis="x")
    place_of = axis.get_subplotspec()
    if place_of is not None and not place_of.is_first_col():
        axis.tick_params(labelleft=False)


def _closest(places: np.ndarray) -> float:
    """The least distance of two neighbours, as a share of the axis."""
    return float(np.diff(places).min() / (places.max() - places.min()))


def _lines(
    axis: Axes, panel: Panel, block: Block, layout: Layout, span: tuple[float, float]
) -> None:
    """Lines along the horizontal key; what was measured at infinity or without a number is a level,
    dotted where its row has a line too.
    """
    names = panel.columns.values()
    places = np.array([float(name) if is_number(name) else math.inf for name in names])
    finite = np.isfinite(places)
    x = places[finite]
    row_looks = looks_of(layout)
    for row in layout.rows:
        values, look = _series(panel, block, row, "value"), row_looks[row]
        if np.isnan(values).all():
            continue
        named: dict[str, Any] = {"label": row_title(layout, row)}
        has_line = np.isfinite(values[finite]).any()
        spread = np.nan_to_num(_series(panel, block, row, "std"))
        style: dict[str, Any] = {"color": look.colour, "ls": "--" if row in layout.oracles else "-"}
        if has_line:
            error = spread_bars(_series(panel, block, row, "std")[finite])
            marks: dict[str, Any] = {"marker": look.marker, "elinewidth": 0.8}
            axis.errorbar(x, values[finite], yerr=error, **marks, **style, **named)
            lines = [block.cells.get((row, column)) for column in panel.columns]
            _marks(axis, [*itertools.compress(lines, finite)], x, values[finite], 90)
        for level, around in zip(values[~finite], spread[~finite], strict=True):
            if has_line:
                axis.axhline(level, color=look.colour, ls=":", lw=0.9)
            else:
                axis.axhline(level, **style, **named)
                axis.axhspan(level - around, level + around, color=look.colour, alpha=0.15, lw=0)
        published = _series(panel, block, row, "published")
        diamonds: dict[str, Any] = {
            "mfc": "none",
            "mec": look.colour,
            "ms": 3.2,
            "mew": 0.8,
            "ls": "none",
        }
        axis.plot(x, published[finite], "D", **diamonds)
        axis.plot([x.max()] * sum(~finite), published[~finite], "D", **diamonds)
        if np.isfinite(published).any():
            axis.plot([], [], "D", label=PUBLISHED, **{**diamonds, "mec": "black"})
        if has_line and np.isfinite(values[~finite]).any():
            unlimited = next(
                name for name in names if not is_number(name) or math.isinf(float(name))
            )
            axis.plot([], [], color="black", ls=":", lw=0.9, label=f"{layout.x_axis} = {unlimited}")
    for chance in {chance for chance in _chances(panel, block, layout) if chance >= span[0]}:
        axis.axhline(chance, label=CHANCE, **GUESS)
    if len(x) > 1 and x.max() / x.min() > WIDE and _closest(np.log(x)) > _closest(x):
        axis.set_xscale("log")
        axis.minorticks_off()
    axis.set_xticks(x, [f"{value:g}" for value in x])
    axis.set_xlabel(layout.x_axis)
