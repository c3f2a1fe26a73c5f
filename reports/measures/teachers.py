"""What teachers have to give: how well they transfer, which were selected when, and in words how
good they are at their own tasks, and how far a row that begins with one is above the table's first.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

import pandas as pd

from fedtables.reports.measures.kind import Kind
from fedtables.reports.tables.table import ShownTable, heading
from fedtables.reports.tables.teachers import correlations, sentences, totals
from fedtables.reports.tables.units import scale_of
from fedtables.results.published import parse_column
from fedtables.results.record import OK

OWN = "teacher-accuracy"


class Teachers(Kind):
    """A plain table of the first metric."""

    def shown(self, lines: pd.DataFrame) -> pd.DataFrame:
        return lines[lines["metric"] != OWN]

    def remarks(self, table: ShownTable) -> list[str]:
        values: dict[tuple[str, str, str], dict[int, float]] = {}
        for record in table.records:
            for m in record.measurements if record.status == OK else ():
                if isinstance(m.value, float):
                    place = (record.row, record.column, m.metric)
                    values.setdefault(place, {})[record.seed] = m.value
        first, metric = next(iter(table.layout.rows)), table.metrics[0]
        texts = []
        for (row, column, name), own in values.items():
            if name != OWN:
                continue
            where, digits = heading(parse_column(column)), scale_of(OWN, table.layout.unit).digits
            texts.append(
                f"{where}: {scale_of(OWN, table.layout.unit).title} on held-out images of their"
                f" own classes, mean over teachers: {_spread(list(own.values()), digits)}"
            )
            over, base = (values.get((key, column, metric), {}) for key in (row, first))
            leads = [over[seed] - base[seed] for seed in over if seed in base]
            if leads:
                texts.append(
                    f"{where}: lead of {table.layout.rows[row]} over {table.layout.rows[first]} in"
                    f" {scale_of(metric, table.layout.unit).title}, seed by seed:"
                    f" {_spread(leads, digits)}"
                )
        return texts

    def draw(self, table: ShownTable, path: Path) -> None:
        super().draw(replace(table, lines=self.shown(table.lines)), path)


def _spread(values: Sequence[float], digits: int) -> str:
    """The mean over seeds, and the standard deviation where there are several."""
    spread = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{fmean(values):.{digits}f}{spread}"


class Selection(Kind):
    """A field per selection and teacher."""

    drawn_by = "fedtables.reports.drawing.plots_matrix.selection_plot"

    def shown(self, lines: pd.DataFrame) -> pd.DataFrame:
        return totals(lines)

    def remarks(self, table: ShownTable) -> list[str]:
        return [
            "transferability: mean over selections; times drawn: in all of them; the CSV has every"
            " selection"
        ]


class Transferability(Kind):
    """A mark per teacher in the plane of the two metrics, and their correlations."""

    drawn_by = "fedtables.reports.drawing.plots_teachers.transferability_plot"

    def remarks(self, table: ShownTable) -> list[str]:
        found = correlations(table.records, table.metrics)
        return sentences(table.layout, found, table.metrics)


MEASURES = {"teachers": Teachers(), "selection": Selection(), "transferability": Transferability()}
