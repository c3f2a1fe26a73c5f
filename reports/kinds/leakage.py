"""Distances from clients' private images, by client and their mean."""

from __future__ import annotations

from pathlib import Path

from reports.kinds.kind import Kind
from reports.tables.table import ShownTable


class Leakage(Kind):
    """Points of every metric; the labels say by which features the distance is."""

    statistic = True

    def draw(self, table: ShownTable, path: Path) -> None:
        from reports.drawing import plots_clients

        plots_clients.leakage_plot(table.layout, table.lines, path, table.metrics)


KIND = Leakage()
