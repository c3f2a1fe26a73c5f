"""Scores and draws of teachers at every selection: a heat map, and a table of them together."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from reports.kinds.kind import Kind
from reports.tables import teachers
from reports.tables.table import ShownTable


class Selection(Kind):
    """A field per selection and teacher."""

    def shown(self, lines: pd.DataFrame) -> pd.DataFrame:
        return teachers.totals(lines)

    def remarks(self, table: ShownTable) -> list[str]:
        return [
            "transferability: mean over selections; times drawn: in all of them; the CSV has every"
            " selection"
        ]

    def draw(self, table: ShownTable, path: Path) -> None:
        from reports.drawing import plots_matrix

        plots_matrix.selection_plot(table.layout, table.lines, path)


KIND = Selection()
