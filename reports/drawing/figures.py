"""What every plot shares: colours, axes and their limits, legend, and files as PNG and SVG."""

from __future__ import annotations

import io
import itertools
import math
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.tables.table import Layout
from results.files import write_atomic

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
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return bounds or (0, 1)
    low, high = min(finite), max(finite)
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


def vertical_axis(axis: Axes, span: tuple[float, float], title: str, named: bool) -> None:
    """Ends and grid of a vertical axis; its title where it is `named` or stands on the left."""
    axis.set_ylim(*span)
    axis.grid(axis="y", alpha=0.3)
    place = axis.get_subplotspec()
    if named or (place is not None and place.is_first_col()):
        axis.set_ylabel(title, fontsize=9)
    else:
        axis.tick_params(labelleft=False)


def spread_bars(values: np.ndarray) -> np.ndarray | None:
    """Spreads as lengths of error bars, none where nothing has one."""
    return None if np.isnan(values).all() else np.nan_to_num(values)
