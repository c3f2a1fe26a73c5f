"""How a measure's table is shown: the interface of the files in `reports/measures/`.

A file there has the name of the file in `benchmarks/measures/` that takes the measures, and kinds
by their names, `MEASURES`. A measure without one, or one that this version does not know, is shown
as `Kind` does: a table of plain numbers and bars.
"""

import functools
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedtables.reports.tables.table import ShownTable
from fedtables.results.arrays import unpack
from fedtables.results.record import OK, Record
from fedtables.results.sourcecode import folder_modules


class Kind:
    """A table of plain numbers; those that derive from it override what is different in theirs."""

    statistic: bool = False
    """Whether the table's labels say how its numbers were made."""
    ranks_first: bool = False
    """Whether a terminal has the first remark, on ranks, before the numbers."""
    drawn_by: str = "fedtables.reports.drawing.plots.table_plot"
    """The function that draws the table, looked up when it draws: its import takes long."""

    def completed(self, records: Sequence[Record], metrics: Sequence[str]) -> list[Record]:
        """The records with what can be computed only of all rows together, for the CSV."""
        return list(records)

    def unlike(self, records: Sequence[Record]) -> Mapping[str, str]:
        """Metrics that the records do not measure as the paper did, each with how: numbers that are
        not compared with those in print.
        """
        return {}

    def judged(
        self, records: Sequence[Record], metrics: Sequence[str], unit: str
    ) -> tuple[list[Record], str]:
        """What of the records a claim is judged on, and what is put behind the verdict."""
        return list(records), ""

    def shown(self, lines: pd.DataFrame) -> pd.DataFrame:
        """The lines of the CSV that are printed as a table, or what stands for them."""
        return lines

    def brief(self, lines: pd.DataFrame) -> pd.DataFrame:
        """Of the lines `shown` those that a terminal has too, where they are many."""
        return lines

    def remarks(self, table: ShownTable) -> list[str]:
        """What a reader is told beside the numbers, a text each."""
        return []

    def draw(self, table: ShownTable, path: Path) -> None:
        """Draw the table into the PNG `path`, or nothing where there is nothing to draw."""
        self.drawing(table, path)

    @property
    def drawing(self) -> Any:
        """What `drawn_by` names."""
        module, _, name = self.drawn_by.rpartition(".")
        return getattr(importlib.import_module(module), name)


class Pictured(Kind):
    """A picture that is painted from the arrays of one seed, beside the numbers."""

    made: str = "predicted"
    """The name of what a row's own cell makes, in its arrays."""
    which: str = ""
    """What the picture shows, in words; empty for nothing to say."""

    def remarks(self, table: ShownTable) -> list[str]:
        drawn = with_arrays(table.records)
        if not drawn or not self.which:
            return []
        several = len({record.seed for record in table.records}) > 1
        return [self.which + (f". The picture is of seed {drawn[0].seed}." if several else "")]

    def draw(self, table: ShownTable, path: Path) -> None:
        if drawn := with_arrays(table.records):
            self.drawing(arrays_of(drawn, self.made), table.layout, path, drawn)


def with_arrays(records: Sequence[Record]) -> list[Record]:
    """The records that are drawn, those of the lowest seed that has any arrays: of every row of it
    that has not failed.
    """
    having = [record for record in records if record.status == OK and record.arrays]
    first = min((record.seed for record in having), default=None)
    return [record for record in having if record.seed == first]


def arrays_of(drawn: Sequence[Record], made: str) -> dict[str, dict[str, np.ndarray]]:
    """The arrays of all records together: what is `made` under the row's key, the rest, which all
    rows of a seed share, under its name.
    """
    found: dict[str, dict[str, np.ndarray]] = {}
    for record in drawn:
        for name, array in unpack(record.arrays).items():
            kind, _, place = name.partition("/")
            found.setdefault(record.row if kind == made else kind, {}).setdefault(place, array)
    return found


def draw_table(measure: str, table: ShownTable, path: Path) -> None:
    """Draw the table of a measure into the PNG `path`, texts as they are."""
    find_kind(measure).draw(replace(table, layout=table.layout.literal()), path)


def find_kind(measure: str) -> Kind:
    """The kind of a measure's tables; the plain one for a measure without its own."""
    return _kinds().get(measure) or Kind()


@functools.cache
def _kinds() -> Mapping[str, Kind]:
    """The kinds of the files in `reports/measures/` by their measures."""
    modules = map(importlib.import_module, folder_modules("fedtables.reports.measures"))
    return {
        measure: kind
        for module in modules
        for measure, kind in getattr(module, "MEASURES", {}).items()
    }
