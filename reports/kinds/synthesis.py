"""Images that the rows of a table make of the same label maps, beside the real ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from reports.kinds.kind import Kind, Regenerated
from reports.kinds.pictures import row_titles, with_arrays
from results.arrays import unpack
from results.record import Record


class Synthesis(Kind):
    """A picture with a line per client."""

    statistic = True

    def arrays(self, records: Sequence[Record]) -> bytes:
        """The file that `reports.drawing.outlines.draw_made` reads, of one seed."""
        together: dict[str, np.ndarray] = {}
        for record in with_arrays(records):
            for name, array in unpack(record.arrays).items():
                kind, _, client = name.partition("/")
                together[f"{record.row if kind == 'made' else kind}/{client}"] = array
        return save(together) if together else b""

    def draw(self, table: Regenerated, path: Path) -> None:
        from reports.drawing import outlines

        if with_arrays(table.records):
            outlines.draw_made(table.arrays, path, row_titles(table.layout), table.layout)


KIND = Synthesis()
