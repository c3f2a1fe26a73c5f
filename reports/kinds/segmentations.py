"""What the rows of a table see in the same few test images, beside the truth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from datasets import catalogue
from datasets.annotations import SEGMENTS, annotations_of
from reports.kinds.kind import Kind, Regenerated
from reports.kinds.pictures import row_titles, with_arrays
from results.arrays import unpack
from results.record import Record


class Segmentations(Kind):
    """A picture with a line per test image."""

    def arrays(self, records: Sequence[Record]) -> bytes:
        """The file that `reports.drawing.pictures.draw_segmentations` reads, of one seed.

        All rows of a seed were shown the same images: they are drawn from the partition axis.
        """
        together: dict[str, np.ndarray] = {}
        for record in with_arrays(records):
            maps = unpack(record.arrays)
            together |= {
                "images": maps["images"],
                "target": maps["target"],
                record.row: maps["predicted"],
            }
        return save(together) if together else b""

    def remarks(self, table: Regenerated) -> list[str]:
        drawn = with_arrays(table.records)
        if not drawn:
            return []
        several = len({record.seed for record in table.records}) > 1
        which = "the numbers are of the test images in the picture alone, not of the whole test set"
        return [which + (f"; the picture is of seed {drawn[0].seed}" if several else "")]

    def draw(self, table: Regenerated, path: Path) -> None:
        from reports.drawing import pictures

        if drawn := with_arrays(table.records):
            names, rows = class_names(drawn[0].data["used"]), row_titles(table.layout)
            pictures.draw_segmentations(table.arrays, path, rows, names, table.layout)


def class_names(used: str) -> list[str]:
    """Names of the classes of a pixel of the data set `used`: what its one annotation of that kind
    means.
    """
    (segments,) = (
        about for about in annotations_of(catalogue.source(used)).values() if about.kind == SEGMENTS
    )
    return segments.meaning.split(", ")


KIND = Segmentations()
