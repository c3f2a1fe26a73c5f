"""What a table's rows make of a test slice of each column, and how far it is from the truth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from reports.kinds.kind import Kind, Regenerated
from reports.kinds.pictures import row_titles, with_arrays
from results.arrays import unpack
from results.record import Record


class ErrorMaps(Kind):
    """A picture with a line per column of the table, and a table of numbers on all subjects."""

    statistic = True

    def arrays(self, records: Sequence[Record]) -> bytes:
        """The file that `reports.drawing.errors.draw_errors` reads, of one seed."""
        together: dict[str, np.ndarray] = {}
        for record in with_arrays(records):
            for name, array in unpack(record.arrays).items():
                kind, _, _ = name.partition("/")
                together[f"{record.row if kind == 'predicted' else kind}/{record.column}"] = array
        return save(together) if together else b""

    def remarks(self, table: Regenerated) -> list[str]:
        drawn = with_arrays(table.records)
        if not drawn:
            return []
        several = len({record.seed for record in table.records}) > 1
        which = (
            "the picture shows the middle slice of each site's first test subject; below each"
            " reconstruction is the mean of its absolute error on that slice"
        )
        return [which + (f", of seed {drawn[0].seed}" if several else "")]

    def draw(self, table: Regenerated, path: Path) -> None:
        from reports.drawing import errors

        if with_arrays(table.records):
            columns = list(table.layout.columns)
            errors.draw_errors(table.arrays, path, row_titles(table.layout), columns, table.layout)


KIND = ErrorMaps()
