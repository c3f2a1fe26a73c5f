"""Plots of tables: bars per column, rows below each other, or lines."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from fedtables.reports.drawing.figures import (
    CHANCE,
    EDGE,
    GUESS,
    LABEL,
    MARGIN,
    PUBLISHED,
    SECTION,
    TICK,
    chance_of,
    filled,
    finish,
    limits,
    page,
    spread_bars,
    styled,
    vertical_axis,
)
from fedtables.reports.drawing.frames import drawn_blocks, ends, panel_names, runs_along
from fedtables.reports.drawing.palette import Look, looks_of
from fedtables.reports.tables.table import Block, Layout, Panel, ShownTable, is_number, row_title

WIDE = 10
"""Ratio of the largest to the smallest place of a line plot above which its axis is logarithmic,
where that keeps neighbours apart."""
FAR = 100
"""Ratio of the largest to the smallest value, of a metric without a natural range, above which its
axis is logarithmic: bars would hide the small ones."""
BAR, ROW = 0.066, 0.155
"""Inches of a bar's width, and of a row's height."""
LETTER, LONG = 0.052, 8
"""About how many inches a letter of a label is wide, and letters above which the headings of many
bars are slanted rather than given room."""
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


@dataclass(frozen=True)
class Shown:
    """What one panel shows."""

    layout: Layout
    block: Block
    panel: Panel
    rows: Mapping[str, pd.DataFrame]
    """By row that has any number in the panel, its numbers by column (`frames.numbers_of`)."""
    all_rows: Sequence[str]
    """Those that have one in any panel."""
    looks: Mapping[str, Look]
    span: tuple[float, float]
    """Ends of the axis of values."""
    group: int
    """Bars of the largest group in any panel of the metric."""

    @property
    def chances(self) -> list[float]:
        """What guessing gives in every column; not a number where it is off the axis."""
        known = (chance_of(self.layout, self.block.scale, c) for c in self.panel.columns)
        return [chance if chance >= self.span[0] else math.nan for chance in known]


@styled
def table_plot(table: ShownTable, path: Path) -> None:
    """The panels of every metric; published values as open diamonds, what guessing gives as a
    dashed line.

    Bars per column, or lines along the layout's horizontal key; a table of one column has its rows
    on the vertical axis. What is counted is not drawn beside what is measured.
    """
    layout, shown = table.layout, drawn_blocks(table.layout, table.lines)
    if not shown:
        return
    panels = [panel for block, _ in shown for panel in block.panels]
    there = {row for _, numbers in shown for row in numbers.index.get_level_values("row")}
    rows = [row for row in layout.rows if row in there]
    along = bool(layout.x_axis) and all(map(runs_along, panels))
    single = not along and all(len(panel.columns) == 1 for panel in panels)
    margin = MARGIN
    if along:
        needs, height = [1.45] * len(shown), 1.9
    elif single:
        needs = [2.0 if len(panels) == 1 else 1.2] * len(shown)
        height = ROW * len(rows) + 0.55
        margin = 0.15 + LETTER * max(len(row_title(layout, row)) for row in rows)
    else:
        needs = [_bars_width(block.panels, _group(numbers)) for block, numbers in shown]
        height = 1.75 + 0.3 * any(map(_slanted, panels))
    figure, axes = page([len(block.panels) for block, _ in shown], needs, height, margin)
    row_looks = looks_of(layout, named=single)
    names, common = panel_names(panels)
    titles = iter(names)
    for (block, numbers), places, need in zip(shown, axes, needs, strict=True):
        bounds = _bounds(block)
        shown_ends = [*ends(numbers), *ends(numbers, "published", "published_std")]
        far = _far_apart(shown_ends, bounds)
        span = far or limits(shown_ends, bounds)
        for number, (axis, panel) in enumerate(zip(places, block.panels, strict=True)):
            of_rows = {row: _of_row(numbers, panel, row) for row in rows}
            of_rows = {row: of for row, of in of_rows.items() if of["value"].notna().any()}
            one = Shown(layout, block, panel, of_rows, rows, row_looks, span, _group(numbers))
            axis.set_title(filled(next(titles), need, LABEL))
            if far is not None and not along:
                (axis.set_xscale if single else axis.set_yscale)("log")
            (_lines if along else _rows if single else _bars)(axis, one)
            if not single:
                vertical_axis(axis, span, block.scale.title, number == 0)
    if layout.title and common:
        layout = replace(layout, labels=(f"{common} in all panels", *layout.labels))
    finish(figure, layout, path)


def _of_row(numbers: pd.DataFrame, panel: Panel, row: str) -> pd.DataFrame:
    """A row's numbers, a line for every column of a panel."""
    found = numbers[numbers.index.get_level_values("row") == row].droplevel("row")
    return found.reindex(list(panel.columns)).fillna({"short": False, "told": ""})


def _bounds(block: Block) -> tuple[float, float] | None:
    """The range that an axis shows: from chance where a metric's zero means nothing."""
    bounds, chance = block.scale.bounds, block.scale.chance
    return bounds if bounds is None or chance is None else (chance, bounds[1])


def _far_apart(
    values: Iterable[float], bounds: tuple[float, float] | None
) -> tuple[float, float] | None:
    """The span of a logarithmic axis, where values without bounds are far apart and all positive;
    it does not begin at zero, so that values are points and no bars.
    """
    finite = [value for value in values if math.isfinite(value)]
    if bounds is not None or not finite or min(finite) <= 0 or max(finite) < FAR * min(finite):
        return None
    return min(finite) / 2, max(finite) * 2


def _group(numbers: pd.DataFrame) -> int:
    """Bars of the largest group."""
    return int(numbers.groupby(level="column").size().max())


def _bars_width(panels: Sequence[Panel], group: int) -> float:
    """Inches of each panel of a metric that keep its bars distinct, and its headings apart."""
    widths = [0.7]
    for panel in panels:
        names = 0.2 if _slanted(panel) else 0.06 + LETTER * _longest(panel)
        widths.append(0.1 + len(panel.columns) * max(BAR * group + 0.06, names))
    return max(widths)


def _longest(panel: Panel) -> int:
    return max(len(part) for name in panel.columns.values() for part in name.split(", "))


def _slanted(panel: Panel) -> bool:
    return len(panel.columns) > 4 and _longest(panel) > LONG


def _points(axis: Axes, at: Any, values: Any, spread: Any, flat: bool, **look: Any) -> None:
    """Values with their spread, at places along an axis: the vertical one if they lie `flat`."""
    x, y = (values, at) if flat else (at, values)
    look["xerr" if flat else "yerr"] = spread_bars(spread)
    axis.errorbar(x, y, **look)


def _marks(axis: Axes, at: Any, numbers: pd.DataFrame, flat: bool = False) -> None:
    """At the places of a row's numbers, which were cut short, and of how many values a mean is that
    leaves some out.
    """
    short = numbers["value"].where(numbers["short"].astype(bool)).to_numpy(float)
    if np.isfinite(short).any():
        for look in (EDGE, SECTION):
            axis.plot(*((short, at) if flat else (at, short)), **look)
    beside: dict[str, Any] = {"xytext": (4, 0), "ha": "left", "va": "center"}
    above = {"xytext": (0, 4), "ha": "center", "va": "bottom", "rotation": 90}
    style: dict[str, Any] = {"textcoords": "offset points", "fontsize": TICK - 1}
    ends = numbers["value"] + numbers["std"].fillna(0)
    for place, end, text in zip(at, ends, numbers["told"], strict=True):
        if text:
            spot = (end, place) if flat else (place, end)
            axis.annotate(text, spot, **style, **(beside if flat else above))


def _row(
    axis: Axes, one: Shown, row: str, at: Any, numbers: pd.DataFrame, width: float, flat: bool
) -> None:
    """A row's values at places along an axis: bars, or points where the axis does not begin where
    bars do; its printed values, and marks. Rows that lie `flat` are named on their axis.
    """
    look, base = one.looks[row], one.block.scale.chance or 0.0
    label = None if flat else row_title(one.layout, row)
    if one.span[0] > base:
        style: dict[str, Any] = {"fmt": look.marker, "color": look.colour, "elinewidth": 0.8}
        _points(axis, at, numbers["value"], numbers["std"], flat, label=label, **style)
    else:
        fill: dict[str, Any] = {"color": look.colour, "hatch": look.hatch, "edgecolor": "white"}
        error = {"xerr" if flat else "yerr": spread_bars(numbers["std"]), "error_kw": SPREAD}
        draw: Any = axis.barh if flat else axis.bar
        draw(at, numbers["value"] - base, width, base, lw=0.3, label=label, **fill, **error)
    if numbers["published"].notna().any():
        printed = numbers["published"], numbers["published_std"]
        _points(axis, at, *printed, flat, label=PUBLISHED, **PRINTED)
    _marks(axis, at, numbers, flat)


def _bars(axis: Axes, one: Shown) -> None:
    """A group of bars for each column, without empty places."""
    width = 0.84 / one.group
    there = pd.DataFrame({row: numbers["value"].notna() for row, numbers in one.rows.items()})
    middle = (there.sum(axis="columns") + 1) / 2
    places = there.cumsum(axis="columns").sub(middle, axis="index") * width
    for row, numbers in one.rows.items():
        has = there[row].to_numpy()
        x = (np.arange(len(numbers)) + places[row].to_numpy())[has]
        _row(axis, one, row, x, numbers[has], width, flat=False)
    for x, chance in enumerate(one.chances):
        if math.isfinite(chance):
            axis.plot([x - 0.5, x + 0.5], [chance] * 2, label=CHANCE, **GUESS)
    names = [name.replace(", ", "\n") for name in one.panel.columns.values()]
    slanted: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
    axis.set_xticks(range(len(names)), names, **(slanted if _slanted(one.panel) else {}))
    axis.tick_params(axis="x", length=0)
    axis.set_xlim(-0.52, len(names) - 0.48)


def _rows(axis: Axes, one: Shown) -> None:
    """The rows of one column below each other; a dash for one without a number."""
    for position, row in enumerate(one.all_rows):
        if row in one.rows:
            _row(axis, one, row, [position], one.rows[row], 0.72, flat=True)
            continue
        place = axis.get_yaxis_transform()
        axis.text(0.02, position, "–", transform=place, va="center", color="#777777")
    for chance in filter(math.isfinite, one.chances):
        axis.axvline(chance, label=CHANCE, **GUESS)
    names = [row_title(one.layout, row) for row in one.all_rows]
    axis.set_yticks(range(len(names)), names)
    axis.tick_params(axis="y", length=0)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.set_xlim(*one.span)
    axis.set_xlabel(one.block.scale.title)
    axis.grid(axis="x")
    at_left = axis.get_subplotspec()
    axis.tick_params(labelleft=at_left is None or at_left.is_first_col())


def _lines(axis: Axes, one: Shown) -> None:
    """Lines along the horizontal key; what was measured at infinity or without a number is a level,
    dotted where its row has a line too.
    """
    names = list(one.panel.columns.values())
    places = np.array([float(name) if is_number(name) else math.inf for name in names])
    finite = np.isfinite(places)
    x = places[finite]
    for row, numbers in one.rows.items():
        look = one.looks[row]
        named: dict[str, Any] = {"label": row_title(one.layout, row)}
        line, levels = numbers[finite], numbers[~finite].dropna(subset="value")
        style: dict[str, Any] = {"color": look.colour}
        style["ls"] = "--" if row in one.layout.oracles else "-"
        has_line = line["value"].notna().any()
        if has_line:
            marks: dict[str, Any] = {"marker": look.marker, "elinewidth": 0.8}
            _points(axis, x, line["value"], line["std"], False, **marks, **style, **named)
            _marks(axis, x, line)
        for level, around in zip(levels["value"], levels["std"].fillna(0.0), strict=True):
            if has_line:
                axis.axhline(level, color=look.colour, ls=":", lw=0.9)
                unlimited = f"{one.layout.x_axis} = {names[int(np.argmin(finite))]}"
                axis.plot([], [], color="black", ls=":", lw=0.9, label=unlimited)
            else:
                axis.axhline(level, **style, **named)
                axis.axhspan(level - around, level + around, color=look.colour, alpha=0.15, lw=0)
        if numbers["published"].notna().any():
            diamonds: dict[str, Any] = {"mfc": "none", "ms": 3.2, "mew": 0.8, "ls": "none"}
            at = np.where(finite, places, x.max())
            axis.plot(at, numbers["published"], "D", mec=look.colour, **diamonds)
            axis.plot([], [], "D", mec="black", label=PUBLISHED, **diamonds)
    for chance in filter(math.isfinite, dict.fromkeys(one.chances)):
        axis.axhline(chance, label=CHANCE, **GUESS)
    if len(x) > 1 and x.max() / x.min() > WIDE and _closest(np.log(x)) > _closest(x):
        axis.set_xscale("log")
        axis.minorticks_off()
    axis.set_xticks(x, [f"{value:g}" for value in x])
    axis.set_xlabel(one.layout.x_axis)


def _closest(places: np.ndarray) -> float:
    """The least distance of two neighbours, as a share of the axis."""
    return float(np.diff(places).min() / (places.max() - places.min()))
