"""A metric against bandwidth: curves, and what every row had sent where all reach the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from reports.kinds.kind import Kind
from reports.tables import bandwidth
from reports.tables.table import ShownTable
from results.record import Record


class Bandwidth(Kind):
    """Lines over gigabytes; the table has their ends and the highest common performance."""

    def completed(self, records: Sequence[Record], metrics: Sequence[str]) -> list[Record]:
        return bandwidth.with_common(records, metrics[0])

    def judged(
        self, records: Sequence[Record], metrics: Sequence[str], unit: str
    ) -> tuple[list[Record], str]:
        common = bandwidth.only_common(self.completed(records, metrics))
        return common, bandwidth.at_which(common, metrics[0], unit)

    def shown(self, lines: pd.DataFrame) -> pd.DataFrame:
        return bandwidth.summary(lines)

    def remarks(self, table: ShownTable) -> list[str]:
        return [
            *bandwidth.sentences(table.layout, table.cells, table.metrics[0]),
            "the CSV has every round",
        ]

    def draw(self, table: ShownTable, path: Path) -> None:
        from reports.drawing import plots_curves

        plots_curves.bandwidth_plot(table.layout, table.lines, path, table.metrics[0])


KIND = Bandwidth()
