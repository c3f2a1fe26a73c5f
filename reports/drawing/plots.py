"""Plots of tables and partitions, as PNG and SVG."""

from __future__ import annotations

import io
import itertools
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd

from metrics.names import BANDWIDTH, TEXTS
from reports.tables.bandwidth import COMMON
from reports.tables.table import Block, Layout, Line, Panel, blocks, heading, is_number, row_title
from reports.tables.units import scale_of
from results.files import write_atomic
from results.published import parse_column

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

COLOURS = (
    "#9aa5b1",
    "#6b8e3f",
    "#c9b48a",
    "#4c9f9a",
    "#d0a0c8",
    "#c05a3c",
    "#7a5ca8",
    "#b8860b",
    "#444444",
    "#87a7c7",
)
WIDE = 10
"""Ratio of the largest to the smallest place of a line plot above which its axis is logarithmic."""
OWN = "#2f5d9b"
"""The method under test stands out; the others are told apart in grey and by most eyes."""
HIGHEST_COMMON, FIRST_REACHED = "highest that every row reaches", "reached for the first time"
"""Labels of the marks in a plot against bandwidth."""


def colour(layout: Layout, row: str) -> str:
    """The row's colour, the same in every panel."""
    return OWN if row == layout.own else COLOURS[list(layout.rows).index(row) % len(COLOURS)]


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG and, beside it, as SVG for papers, each in one step, and forget it."""
    for kind, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
        buffer = io.BytesIO()
        with matplotlib.rc_context(
            {"svg.hashsalt": "fedtables"}
        ):  # so that the same plot is the same file
            figure.savefig(buffer, format=kind, dpi=150, bbox_inches="tight", metadata=metadata)
        write_atomic(path.with_name(f"{path.name.removesuffix('.png')}.{kind}"), buffer.getvalue())
    plt.close(figure)


def number_or_nan(text: str) -> float:
    """The number in a field of a CSV; not a number for an empty one."""
    return float(text) if text else math.nan


def frame(blocks: Sequence[int], width: float, height: float) -> tuple[Figure, list[list[Axes]]]:
    """Axes for the panels of every metric: one metric below the other, or side by side if each has
    a single panel.
    """
    beside = max(blocks) == 1
    groups = [len(blocks)] if beside else list(blocks)
    across = 2 if max(groups) == 4 else min(max(groups), 3)
    downs = [-(-count // across) for count in groups]
    figure, axes = plt.subplots(
        sum(downs), across, figsize=(width * across, height * sum(downs)), squeeze=False
    )
    shown: list[list[Axes]] = []
    for count, down, last in zip(groups, downs, itertools.accumulate(downs), strict=True):
        places = list(axes[last - down : last].flat)
        for axis in places[count:]:
            axis.set_visible(False)
        shown.append(places[:count])
    for axis in itertools.chain(*shown):
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_axisbelow(True)
        axis.tick_params(labelsize=8)
    return figure, [[axis] for axis in shown[0]] if beside else shown


def limits(values: Iterable[float], bounds: tuple[float, float] | None) -> tuple[float, float]:
    """Ends of an axis: from zero through the metric's bounds, or less of them where the values do
    not reach that far.

    Values that lie close together and far from zero get an axis of their own, which does not begin
    there.
    """
    found = [value for value in values if math.isfinite(value)]
    if not found:
        return bounds or (0, 1)
    low, high = min(found), max(found)
    bottom, top = min(low, bounds[0] if bounds else 0), max(high, bounds[1] if bounds else 0)
    if 0 < high - low < min(0.1 * (top - bottom), (low - bottom) / 3):
        margin = (high - low) / 4
        return low - margin, (
            min(high + margin, top + 0.02 * (top - bottom)) if bounds else high + margin
        )
    if bounds is None or high < bottom + 0.6 * (top - bottom):
        top = high + 0.06 * (high - bottom) or 1
    return bottom, top + (0.02 * (top - bottom) if bounds else 0)


def finish(figure: Figure, axes: Sequence[Axes], layout: Layout, path: Path) -> None:
    """Write a figure with the table's title above, and a legend of all that its axes label
    below.
    """
    handles: dict[str, Artist] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    for mark in ("published", HIGHEST_COMMON, FIRST_REACHED):
        if mark in handles:
            handles[mark] = handles.pop(mark)  # last
    figure.tight_layout()
    # Title and legend lie outside and the saved picture grows by them, so neither can cover a
    # panel. A character of this size is about 0.07 inches wide.
    width = figure.get_size_inches()[0]
    lines = [f"{layout.title}. {layout.caption}", "; ".join(layout.labels)]
    text = "\n".join(
        wrapped
        for line in lines
        for wrapped in textwrap.wrap(line, max(50, int(width / 0.07)), break_on_hyphens=False)
    )
    figure.text(0.5, 1.0, text, ha="center", va="bottom", fontsize=9)
    if handles:
        fitting = int(width / (0.065 * max(map(len, handles)) + 0.5))
        columns = max(1, min(6, len(handles), fitting))
        # Equal rows rather than a last one of a single entry.
        columns = -(-len(handles) // -(-len(handles) // columns))
        below: dict[str, Any] = {
            "loc": "upper center",
            "bbox_to_anchor": (0.5, 0.0),
            "frameon": False,
        }
        figure.legend(list(handles.values()), list(handles), ncol=columns, fontsize=8, **below)
    save(figure, path)


def table_plot(layout: Layout, lines: Sequence[Line], path: Path) -> None:
    """The panels of every metric; published values as open diamonds.

    Bars per column, or lines along the layout's horizontal key; a table of one column has its rows
    on the vertical axis.
    """
    numbers = [line for line in lines if line["metric"] not in TEXTS]
    found = [
        replace(block, panels=[_attempted(panel, block, layout) for panel in block.panels])
        for block in blocks(layout, pd.DataFrame(numbers))
        if block.panels
    ]
    if not found:
        return
    single = not layout.x_axis and all(
        len(panel.columns) == 1 for block in found for panel in block.panels
    )
    height = 0.3 * len(layout.rows) + 1.0 if single else 2.9
    # Room for the names of the rows, for a curve, or for the groups of bars.
    if single:
        width = 3.4 + 0.06 * max(len(row_title(layout, row)) for row in layout.rows) / min(
            len(found), 2
        )
    elif layout.x_axis and all(
        is_number(name)
        for block in found
        for panel in block.panels
        for name in panel.columns.values()
    ):
        width = 3.4
    else:
        width = max(
            4.6,
            *(_bars_width(panel, len(layout.rows)) for block in found for panel in block.panels),
        )
    figure, axes = frame([len(block.panels) for block in found], width, height)
    for block, places in zip(found, axes, strict=True):
        span = limits(_drawn(layout, block), block.scale.bounds)
        for number, (axis, panel) in enumerate(zip(places, block.panels, strict=True)):
            if single:
                _rows(axis, panel, block, layout, span)
            elif layout.x_axis and all(is_number(name) for name in panel.columns.values()):
                _lines(axis, panel, block, layout)
            else:
                _bars(axis, panel, block, layout, span)
            if not single:
                _vertical(axis, span, block.scale.title, number == 0)
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


def _vertical(axis: Axes, span: tuple[float, float], title: str, named: bool) -> None:
    axis.set_ylim(*span)
    axis.grid(axis="y", alpha=0.3)
    place = axis.get_subplotspec()
    if named or (place is not None and place.is_first_col()):
        axis.set_ylabel(title, fontsize=9)
    else:
        axis.tick_params(labelleft=False)


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
    found: list[float] = []
    for panel, row in itertools.product(block.panels, layout.rows):
        for name, spread in (("value", "std"), ("published", "published_std")):
            values, around = (
                _series(panel, block, row, name),
                np.nan_to_num(_series(panel, block, row, spread)),
            )
            found += [*(values - around), *(values + around)]
    return found


def _spread(values: np.ndarray) -> np.ndarray | None:
    return None if np.isnan(values).all() else np.nan_to_num(values)


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
            _spread(_series(panel, block, row, "std")),
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
            _spread(_series(panel, block, row, "published_std")),
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
            _spread(_series(panel, block, row, "std")),
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
            _spread(_series(panel, block, row, "published_std")),
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
        own: dict[str, Any] = {"color": colour(layout, row), "label": row_title(layout, row)}
        style = "--" if row in layout.oracles else "-"
        spread = _spread(_series(panel, block, row, "std")[finite])
        axis.errorbar(
            x, values[finite], yerr=spread, ls=style, marker="o", ms=3.5, capsize=2, **own
        )
        for level in values[~finite]:
            axis.axhline(level, color=own["color"], ls=":", lw=1)
        published = _series(panel, block, row, "published")[finite]
        axis.plot(x, published, "D", mfc="none", mec=own["color"], ms=4, mew=0.9, ls="none")
    if any(line["published"] for line in block.cells.values()):
        axis.plot([], [], "D", mfc="none", mec="black", ms=4, ls="none", label="published")
    if not finite.all():
        axis.plot([], [], color="black", ls=":", lw=1, label=f"{layout.x_axis} = inf")
    if len(x) > 1 and x.max() / x.min() > WIDE:
        axis.set_xscale("log")
        axis.minorticks_off()
    axis.set_xticks(x, [f"{value:g}" for value in x])
    axis.set_xlabel(layout.x_axis, fontsize=8)


Curve = dict[int, tuple[float, float]]
"""Value and std by epoch."""


def curve_plot(layout: Layout, lines: Sequence[Line], path: Path, first: Sequence[str]) -> None:
    """Curves over epochs, a panel per metric and column: the rows in `first` (clients), and after
    their end the other rows.
    """
    curves: dict[str, dict[str, dict[str, Curve]]] = {}
    for line in lines:
        keys = parse_column(line["column"])
        if line["status"] != "ok" or "epoch" not in keys:
            continue
        epoch = int(keys.pop("epoch"))
        point = (float(line["value"]), number_or_nan(line["std"]))
        curves.setdefault(line["metric"], {}).setdefault(heading(keys), {}).setdefault(
            line["row"], {}
        )[epoch] = point
    if not curves:
        return
    figure, axes = frame([len(columns) for columns in curves.values()], 3.6, 2.9)
    for (metric, columns), places in zip(curves.items(), axes, strict=True):
        scale = scale_of(metric, layout.unit)
        points = [
            point
            for rows in columns.values()
            for curve in rows.values()
            for point in curve.values()
        ]
        span = limits(
            [value + sign * np.nan_to_num(std) for value, std in points for sign in (-1, 1)],
            scale.bounds,
        )
        for number, (axis, (column, rows)) in enumerate(zip(places, columns.items(), strict=True)):
            _curves(axis, layout, rows, first)
            axis.set_title(column, fontsize=9)
            _vertical(axis, span, scale.title, number == 0)
    finish(figure, list(itertools.chain(*axes)), layout, path)


def _curves(axis: Axes, layout: Layout, rows: Mapping[str, Curve], first: Sequence[str]) -> None:
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
        axis.plot(
            x,
            y,
            color=own,
            ls="--" if row in layout.oracles else "-",
            marker=".",
            label=row_title(layout, row),
        )
        if s.any():
            axis.fill_between(x, y - s, y + s, color=own, alpha=0.2)
    if offset:
        axis.axvline(offset + 0.5, color="black", lw=0.6, ls=":")
    axis.set_xlabel("epoch (clients, then global model)" if offset else "epoch", fontsize=8)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))


def bandwidth_plot(layout: Layout, lines: Sequence[Line], path: Path, metric: str) -> None:
    """A metric against cumulative GB on a logarithmic axis, a panel per column, with the seeds'
    spread as a band.

    The dotted line is the best value that every row reaches, with a diamond where a row first did.
    Rows whose model learns after all bytes have crossed are vertical, rows that send nothing
    horizontal.
    """
    points: dict[str, dict[str, dict[str, dict[str, tuple[float, float]]]]] = {}
    for line in lines:
        keys = parse_column(line["column"])
        place = keys.pop("round", "") or keys.pop("at", "")
        if line["status"] == "ok" and place:
            value = (float(line["value"]), number_or_nan(line["std"]))
            columns = points.setdefault(heading(keys), {})
            columns.setdefault(line["row"], {}).setdefault(place, {})[line["metric"]] = value
    if not points:
        return
    figure, axes = frame([len(points)], 6.2, 3.6)
    scale, traffic = scale_of(metric, layout.unit), scale_of(BANDWIDTH, layout.unit)
    drawn = [
        m[metric] for rows in points.values() for curve in rows.values() for m in curve.values()
    ]
    span = limits(
        [value + sign * np.nan_to_num(std) for value, std in drawn for sign in (-1, 1)],
        scale.bounds,
    )
    for number, (axis, (column, rows)) in enumerate(zip(axes[0], points.items(), strict=True)):
        _traffic(axis, layout, rows, metric)
        axis.set_title(column, fontsize=9)
        axis.set_xlabel(f"{traffic.title}, all clients, up and down", fontsize=8)
        _vertical(axis, span, scale.title, number == 0)
    finish(figure, axes[0], layout, path)


def _traffic(
    axis: Axes,
    layout: Layout,
    rows: Mapping[str, Mapping[str, Mapping[str, tuple[float, float]]]],
    metric: str,
) -> None:
    sent: list[float] = []
    for row in layout.rows:
        if row not in rows:
            continue
        curve = [m for place, m in rows[row].items() if place != COMMON]
        x, (y, s) = (
            np.array([m[BANDWIDTH][0] for m in curve]),
            np.nan_to_num(np.array([m[metric] for m in curve])).T,
        )
        look: dict[str, Any] = {"color": colour(layout, row), "label": row_title(layout, row)}
        if not x.any():
            axis.axhline(y[-1], ls="-.", lw=1, **look)
            continue
        sent += list(x)
        marks: Any = [len(x) - 1] if x[0] == x[-1] else max(1, len(x) // 25)
        axis.plot(
            x,
            y,
            ls="--" if row in layout.oracles else "-",
            marker="o",
            ms=3.5,
            markevery=marks,
            **look,
        )
        if s.any():
            axis.fill_between(x, y - s, y + s, color=look["color"], alpha=0.15, lw=0)
        common = rows[row].get(COMMON)
        if common is not None:
            axis.axhline(
                common[metric][0], color="black", lw=0.8, ls=":", zorder=0, label=HIGHEST_COMMON
            )
            axis.plot(
                [], [], "D", ms=6, mfc="none", mec="black", mew=1.2, ls="none", label=FIRST_REACHED
            )
            axis.plot(
                common[BANDWIDTH][0],
                common[metric][0],
                "D",
                ms=6,
                mfc="none",
                mec=look["color"],
                mew=1.2,
            )
    axis.set_xscale("log")
    if sent:
        wide = max(sent) > 100 * min(sent)
        axis.xaxis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.grid(axis="x", alpha=0.3)


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
        found = [values[row].get(client, (math.nan, math.nan)) for client in clients]
        x = np.arange(len(clients)) + (position - (len(rows) - 1) / 2) * width
        left.errorbar(
            x,
            [value for value, _ in found],
            yerr=_spread(np.array([std for _, std in found])),
            **look,
        )
        own = np.array([value for value, _ in found if math.isfinite(value)])
        average = values[row].get(AVERAGE, (float(own.mean()), math.nan))[0]
        right.errorbar(
            [position], [average], yerr=[[average - own.min()], [own.max() - average]], **look
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
