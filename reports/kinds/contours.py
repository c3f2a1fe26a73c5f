"""What the rows of a table find in a test image of each site, as outlines beside the truth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from reports.kinds.kind import Kind, Regenerated
from reports.kinds.pictures import row_titles, with_arrays
from results.arrays import unpack
from results.record import Record


class Contours(Kind):
    """A picture with a line per site, and a table of numbers on all test samples."""

    statistic = True

    def arrays(self, records: Sequence[Record]) -> bytes:
        """The file that `reports.drawing.outlines.draw_outlines` reads, of one seed: images and
        targets by site, and under its key what each row finds.
        """
        together: dict[str, np.ndarray] = {}
        for record in with_arrays(records):
            for name, array in unpack(record.arrays).items():
                kind, _, site = name.partition("/")
                together[f"{record.row if kind == 'predicted' else kind}/{site}"] = array
        return save(together) if together else b""

    def remarks(self, table: Regenerated) -> list[str]:
        drawn = with_arrays(table.records)
        if not drawn:
            return []
        several = len({record.seed for record in table.records}) > 1
        which = "the picture shows the middle of the test image of each site that has most labelled"
        return [which + (f", of seed {drawn[0].seed}" if several else "")]

    def draw(self, table: Regenerated, path: Path) -> None:
        from reports.drawing import outlines

        if with_arrays(table.records):
            outlines.draw_outlines(table.arrays, path, row_titles(table.layout), table.layout)


KIND = Contours()
