"""Pictures of reconstructed images beside maps of their errors, on one colour scale."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from reports.drawing.figures import TICK, TWO_COLUMNS, blank, finish, styled
from reports.drawing.outlines import IMAGE, TARGET, read_pictures
from reports.tables.table import Layout
from results.published import parse_column

HIGH = 99.5
"""Percentile of all errors of the picture at which the colour scale ends."""


@styled
def draw_errors(
    source: Path, path: Path, rows: Mapping[str, str], columns: Sequence[str], about: Layout
) -> None:
    """A picture with a line per column of the table: the truth, the input, and what each of `rows`
    (title by key) makes of it beside the absolute error, whose mean is printed.

    `source` is a safetensors file of `image/COLUMN`, `target/COLUMN` and `ROW/COLUMN`, float32 (h,
    w); rows that it lacks are left out. Raises ResultsError for a file that holds something else.
    """
    arrays, there, shown = read_pictures(source, rows)
    lines = [column for column in columns if column in there]
    made = {(key, line): arrays[f"{key}/{line}"] for key in (IMAGE, *shown) for line in lines}
    apart = {place: abs(made[place] - arrays[f"{TARGET}/{place[1]}"]) for place in made}
    top = float(np.percentile(np.concatenate([error.ravel() for error in apart.values()]), HIGH))
    titles = {IMAGE: "input", **{key: rows[key] for key in shown}}
    across = 1 + 2 * len(titles)
    figure = blank((TWO_COLUMNS, (TWO_COLUMNS - 0.6) / across * len(lines) * 1.16 + 0.5), 0.015)
    axes = figure.subplots(len(lines), across, squeeze=False)
    errors = None
    for places, line in zip(axes, lines, strict=True):
        truth = arrays[f"{TARGET}/{line}"]
        bright = float(truth.max()) or 1.0
        grey = {"cmap": "gray", "vmin": 0, "vmax": bright, "interpolation": "none"}
        places[0].imshow(truth, **grey)
        places[0].set_ylabel(_of_column(line, lines), fontsize=TICK)
        for number, key in enumerate(titles):
            places[1 + 2 * number].imshow(made[key, line], **grey)
            errors = places[2 + 2 * number].imshow(
                apart[key, line], cmap="inferno", vmin=0, vmax=top, interpolation="none"
            )
            places[2 + 2 * number].set_xlabel(f"{apart[key, line].mean():.4f}", fontsize=TICK)
        for axis in places:
            axis.set(xticks=[], yticks=[])
    axes[0][0].set_title("truth", fontsize=TICK)
    for number, title in enumerate(titles.values()):
        wrapped = "\n".join(textwrap.wrap(title, 12))
        axes[0][1 + 2 * number].set_title(wrapped, fontsize=TICK)
        axes[0][2 + 2 * number].set_title("error", fontsize=TICK)
    if errors is not None:
        bar = figure.colorbar(errors, ax=axes, fraction=0.02, pad=0.01, extend="max")
        bar.ax.tick_params(labelsize=TICK)
    finish(figure, [], about, path)


def _of_column(column: str, columns: Sequence[str]) -> str:
    """A column by the keys in which the columns differ."""
    every = [parse_column(other) for other in columns]
    keys = parse_column(column)
    differ = [key for key in keys if len({other.get(key) for other in every}) > 1]
    return " ".join(keys[key] for key in differ) or column
