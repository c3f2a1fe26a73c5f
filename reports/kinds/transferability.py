"""Two metrics of each teacher, and how they go together."""

from __future__ import annotations

from pathlib import Path

from reports.kinds.kind import Kind
from reports.tables import teachers
from reports.tables.table import ShownTable


class Transferability(Kind):
    """A mark per teacher in the plane of the two metrics, and their correlations."""

    def remarks(self, table: ShownTable) -> list[str]:
        correlations = teachers.correlations(table.records, table.metrics)
        return teachers.sentences(table.layout, correlations, table.metrics)

    def draw(self, table: ShownTable, path: Path) -> None:
        from reports.drawing import plots_teachers

        correlations = teachers.correlations(table.records, table.metrics)
        plots_teachers.transferability_plot(
            table.layout, table.lines, path, table.metrics, correlations
        )


KIND = Transferability()
