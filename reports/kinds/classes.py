"""The partition itself: a table of texts, and a picture of how many samples of each class clients
hold.
"""

from __future__ import annotations

from pathlib import Path

from reports.kinds.kind import Kind, Regenerated


class Classes(Kind):
    """Classes by client."""

    def draw(self, table: Regenerated, path: Path) -> None:
        from reports.drawing import plots_clients

        plots_clients.partition_plot(table.label_counts(), path, table.title)


KIND = Classes()
