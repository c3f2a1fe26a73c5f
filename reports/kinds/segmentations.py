"""What the rows of a table see in the same few test images, beside the truth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from datasets import catalogue
from datasets.source import SEGMENTS, annotations_of
from reports.kinds.pictures import Arrays, Pictured, titles_of
from reports.tables.table import Layout
from results.record import Record


class Segmentations(Pictured):
    """A picture with a line per test image. All rows of a seed were shown the same images."""

    which = "the numbers are of the test images in the picture alone, not of the whole test set"
    of_seed = "; the picture is"

    def picture(self, arrays: Arrays, layout: Layout, path: Path, drawn: Sequence[Record]) -> None:
        from matplotlib.colors import to_rgb
        from matplotlib.patches import Patch

        from reports.drawing.pictures import class_colours, image_grid, rgb

        classes, titles = class_names(drawn[0].data["used"]), titles_of(layout, arrays)
        colours = [*class_colours(len(classes)), "#ffffff"]
        palette = np.array([to_rgb(colour) for colour in colours])
        # The last colour, which is that of no class, comes after all others.
        maps = [np.minimum(arrays[key][""], len(classes)) for key in ("target", *titles)]
        lines = [
            ("", [rgb(image), *(palette[shown[number]] for shown in maps)], ())
            for number, image in enumerate(arrays["images"][""])
        ]
        names = [*classes, "not labelled"]
        handles = [
            Patch(facecolor=colours[value], edgecolor="black", lw=0.4, label=names[value])
            for value in sorted({int(value) for shown in maps for value in np.unique(shown)})
        ]
        heads = ["input", "ground truth", *titles.values()]
        image_grid(lines, heads, path, layout, handles)


def class_names(used: str) -> list[str]:
    """Names of the classes of a pixel of the data set `used`: what its one annotation of that kind
    means.
    """
    (segments,) = (
        about for about in annotations_of(catalogue.source(used)).values() if about.kind == SEGMENTS
    )
    return segments.meaning.split(", ")


KIND = Segmentations()
