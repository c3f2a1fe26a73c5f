"""Matrices: what was trained here and tested there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from reports.drawing.figures import SECTION, TICK, finish, number_or_nan, page, styled
from reports.tables.counts import left_out
from reports.tables.table import MARK, Layout, Line, cut_short
from reports.tables.units import scale_of
from results.published import parse_column

HEAT = "Blues"
"""One hue, light to dark: its order is seen with any colour vision, and in grey."""
DARK = 0.6
"""Share of the colours above which text is white."""


def is_matrix(lines: Sequence[Line], keys: tuple[str, str]) -> bool:
    """Whether the lines are of one row, and their columns those of more than one value of both
    keys.
    """
    columns = [parse_column(line["column"]) for line in lines]
    return (
        len({line["row"] for line in lines}) == 1
        and all(set(column) == set(keys) for column in columns)
        and all(len({column[key] for column in columns}) > 1 for key in keys)
    )


@styled
def matrix_plot(layout: Layout, lines: Sequence[Line], path: Path, keys: tuple[str, str]) -> None:
    """A panel per metric, the first of `keys` down and the second across, darker where it is
    better, with a mark where it was cut short; in brackets what is printed.
    """
    columns = [parse_column(line["column"]) for line in lines]
    down, across = (list(dict.fromkeys(column[key] for column in columns)) for key in keys)
    metrics = list(dict.fromkeys(line["metric"] for line in lines))
    figure, [axes] = page([[1.55] * len(metrics)], 0.5 + 0.3 * len(down), 0.75)
    for number, (axis, metric) in enumerate(zip(axes, metrics, strict=True)):
        values, printed = (np.full((len(down), len(across)), np.nan) for _ in range(2))
        marked = np.zeros(values.shape, dtype=bool)
        counts = np.full(values.shape, "", dtype=object)
        for line, column in zip(lines, columns, strict=True):
            if line["metric"] == metric:
                place = down.index(column[keys[0]]), across.index(column[keys[1]])
                values[place] = number_or_nan(line["value"])
                printed[place] = number_or_nan(line["published"])
                marked[place] = cut_short(line)
                counts[place] = left_out(line)
        scale = scale_of(metric, layout.unit)
        digits = max(1, scale.digits - 1)
        _panel(axis, values, printed, marked, counts, digits, lower=scale.sign < 0)
        axis.set_title(scale.title)
        axis.set_xticks(range(len(across)), across)
        axis.set_yticks(range(len(down)), down if number == 0 else [""] * len(down))
        axis.set_xlabel(keys[1])
    axes[0].set_ylabel(keys[0])
    if any(map(cut_short, lines)):
        axes[0].plot([], [], **SECTION)  # for the legend
    finish(figure, axes, layout, path)


def _panel(
    axis: Axes,
    values: np.ndarray,
    printed: np.ndarray,
    marked: np.ndarray,
    counts: np.ndarray,
    digits: int,
    *,
    lower: bool,
) -> None:
    axis.set_facecolor("#f0f0f0")
    axis.imshow(values, cmap=HEAT + "_r" * lower, aspect="auto", interpolation="nearest")
    least, most = (np.nanmin(values), np.nanmax(values)) if np.isfinite(values).any() else (0, 1)
    for (row, column), value in np.ndenumerate(values):
        if not np.isfinite(value):
            continue
        share = (value - least) / (most - least) if most > least else 0.0
        dark = (1 - share if lower else share) > DARK
        text = f"{value:.{digits}f} {MARK}" if marked[row, column] else f"{value:.{digits}f}"
        if counts[row, column]:
            text += f"\n{counts[row, column]}"
        if np.isfinite(printed[row, column]):
            text += f"\n({printed[row, column]:.{digits}f})"
        ink = "white" if dark else "black"
        axis.text(column, row, text, ha="center", va="center", fontsize=TICK - 1, color=ink)
