"""Metrics by site: plain numbers, and a matrix where each site's own model is tested on every
site.
"""

from __future__ import annotations

from pathlib import Path

from reports.kinds.kind import Kind
from reports.tables.table import ShownTable

KEYS = ("train", "test")
"""Column keys of a matrix, down and across."""


class BySite(Kind):
    """A table that says on which test samples it is measured."""

    statistic = True

    def draw(self, table: ShownTable, path: Path) -> None:
        from reports.drawing import plots_matrix

        if plots_matrix.is_matrix(table.lines, KEYS):
            plots_matrix.matrix_plot(table.layout, table.lines, path, KEYS)
        else:
            super().draw(table, path)


KIND = BySite()
