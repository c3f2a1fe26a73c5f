"""Metrics after every epoch: curves, and a table of where they end."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from reports.kinds.kind import Kind
from reports.tables.table import ShownTable, last_epochs


class Curve(Kind):
    """Lines over the column key `epoch`."""

    def shown(self, lines: pd.DataFrame) -> pd.DataFrame:
        return last_epochs(lines)

    def remarks(self, table: ShownTable) -> list[str]:
        return ["last epoch of each curve; the CSV has all"]

    def draw(self, table: ShownTable, path: Path) -> None:
        from reports.drawing import plots_curves

        plots_curves.curve_plot(table.layout, table.lines, path, table.clients)


KIND = Curve()
