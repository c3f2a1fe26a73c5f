"""What the rows of a table find in a test image of each site, as outlines beside the truth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reports.kinds.pictures import Arrays, Pictured, titles_of
from reports.tables.table import Layout
from results.record import Record

FOUND, TRUE = "#ffd400", "#00e5ff"
"""Colours of outlines: of what is found, and of the truth."""


class Contours(Pictured):
    """A picture with a line per site, and a table of numbers on all test samples."""

    statistic = True
    which = "the picture shows the middle of the test image of each site that has most labelled"

    def picture(self, arrays: Arrays, layout: Layout, path: Path, drawn: Sequence[Record]) -> None:
        from reports.drawing.pictures import image_grid, outlined, rgb

        sites = sorted(arrays["image"])
        titles = titles_of(layout, arrays, sites)
        lines = []
        for site in sites:
            image = rgb(arrays["image"][site])
            found = [outlined(image, arrays[row][site], FOUND) for row in titles]
            truth = outlined(image, arrays["target"][site], TRUE)
            lines.append((site, [image, *found, truth], ()))
        image_grid(lines, ["input", *titles.values(), "ground truth"], path, layout)


KIND = Contours()
