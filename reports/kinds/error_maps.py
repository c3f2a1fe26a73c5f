"""What a table's rows make of a test slice of each column, and how far it is from the truth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from reports.kinds.pictures import Arrays, Pictured, titles_of
from reports.tables.table import Layout
from results.arrays import unpack
from results.published import parse_column
from results.record import Record

HIGH = 99.5
"""Percentile of all errors of the picture at which the colour scale ends."""


class ErrorMaps(Pictured):
    """A picture with a line per column of the table, and a table of numbers on all subjects."""

    statistic = True
    which = (
        "the picture shows the middle slice of each site's first test subject; below each"
        " reconstruction is the mean of its absolute error on that slice"
    )

    def picture(self, arrays: Arrays, layout: Layout, path: Path, drawn: Sequence[Record]) -> None:
        from reports.drawing.pictures import error_colours, image_grid, rgb

        slices = by_column(drawn)
        columns = [column for column in layout.columns if column in slices["image"]]
        titles = {"image": "input", **titles_of(layout, slices, columns)}
        truths = slices["target"]
        apart = {(key, c): abs(slices[key][c] - truths[c]) for key in titles for c in columns}
        most = float(np.percentile(np.concatenate([*map(np.ravel, apart.values())]), HIGH)) or 1.0
        lines = []
        for column in columns:
            bright = float(truths[column].max()) or 1.0
            images, notes = [rgb(np.clip(truths[column][None] / bright, 0, 1))], [""]
            for key in titles:
                images.append(rgb(np.clip(slices[key][column][None] / bright, 0, 1)))
                images.append(error_colours(apart[key, column], most))
                notes += ["", f"{apart[key, column].mean():.4f}"]
            lines.append((differing(column, columns), images, notes))
        heads = ["truth", *(text for title in titles.values() for text in (title, "error"))]
        image_grid(lines, heads, path, layout, errors=most)


def by_column(drawn: Sequence[Record]) -> dict[str, dict[str, np.ndarray]]:
    """`image`, `target` and what each row predicts, by the table's column."""
    found: dict[str, dict[str, np.ndarray]] = {}
    for record in drawn:
        for name, array in unpack(record.arrays).items():
            kind = name.partition("/")[0]
            found.setdefault(record.row if kind == "predicted" else kind, {})[record.column] = array
    return found


def differing(column: str, columns: Sequence[str]) -> str:
    """A column by the keys in which the columns differ."""
    every = [parse_column(other) for other in columns]
    keys = parse_column(column)
    differ = [key for key in keys if len({other.get(key) for other in every}) > 1]
    return " ".join(keys[key] for key in differ) or column


KIND = ErrorMaps()
