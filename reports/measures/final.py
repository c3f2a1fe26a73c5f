"""Tables of numbers over epochs and bytes."""

from collections.abc import Sequence

import pandas as pd

from fedtables.reports.measures.kind import Kind
from fedtables.reports.tables import bandwidth
from fedtables.reports.tables.table import ShownTable, last_epochs
from fedtables.results.record import Record


class Bandwidth(Kind):
    """Lines over gigabytes; the table has their ends and the highest common performance."""

    drawn_by = "fedtables.reports.drawing.plots_curves.bandwidth_plot"

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


class Curve(Kind):
    """Lines over the column key `epoch`."""

    drawn_by = "fedtables.reports.drawing.plots_curves.curve_plot"

    def shown(self, lines: pd.DataFrame) -> pd.DataFrame:
        return last_epochs(lines)

    def remarks(self, table: ShownTable) -> list[str]:
        return ["last epoch of each curve; the CSV has all"]


MEASURES = {"bandwidth": Bandwidth(), "curve": Curve()}
