"""The partition itself: a table of texts, and a picture of how many samples of each class clients
hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save

from reports.kinds.kind import Kind, Regenerated
from reports.kinds.pictures import with_arrays
from results.arrays import unpack
from results.record import Record


class Classes(Kind):
    """Classes by client."""

    def arrays(self, records: Sequence[Record]) -> bytes:
        """The label counts (clients, classes) of the division of every row, under its key, of one
        seed.
        """
        counts: dict[str, np.ndarray] = {}
        for record in with_arrays(records):
            counts.setdefault(record.row, unpack(record.arrays)["counts"])
        return save(counts) if counts else b""

    def draw(self, table: Regenerated, path: Path) -> None:
        from reports.drawing import plots_clients

        if with_arrays(table.records):
            counts = load_file(table.arrays)
            rows = table.layout.rows
            named = {title: counts[row] for row, title in rows.items() if row in counts}
            plots_clients.partition_plot(named, path, table.layout)


KIND = Classes()
