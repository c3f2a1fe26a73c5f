"""The partition itself: a table of texts, and a picture of how many samples of each class clients
hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reports.kinds.pictures import Arrays, Pictured
from reports.tables.table import Layout
from results.record import Record


class Classes(Pictured):
    """Classes by client, a panel for the first division of each row."""

    made = "counts"

    def picture(self, arrays: Arrays, layout: Layout, path: Path, drawn: Sequence[Record]) -> None:
        from reports.drawing.plots_clients import partition_plot

        named = {title: arrays[row][""] for row, title in layout.rows.items() if row in arrays}
        partition_plot(named, path, layout)


KIND = Classes()
