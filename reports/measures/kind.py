"""How a measure's table is shown: the interface of the files in `reports/measures/`.

A file there has kinds by the names of their measures, `KINDS`. A measure without one, or one that
this version does not know, is shown as `Kind` does: a table of plain numbers and bars.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from reports.tables.table import ShownTable
from results.record import Record


class Kind:
    """A table of plain numbers; those that derive from it override what is different in theirs."""

    statistic: bool = False
    """Whether the table's labels say how its numbers were made."""
    ranks_first: bool = False
    """Whether a terminal has the first remark, on ranks, before the numbers."""

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
        from reports.drawing import plots

        plots.table_plot(table.layout, table.lines, path)


def draw_table(kind: Kind, table: ShownTable, path: Path) -> None:
    """Draw the table into the PNG `path`, texts as they are."""
    kind.draw(replace(table, layout=table.layout.literal()), path)


def find_kind(measure: str) -> Kind:
    """The kind of a measure's tables; the plain one for a measure without its own."""
    return _kinds().get(measure, (Kind(), __name__))[0]


def module_of(measure: str) -> str:
    """The module that shows a measure's tables."""
    return _kinds().get(measure, (Kind(), __name__))[1]


@functools.cache
def _kinds() -> Mapping[str, tuple[Kind, str]]:
    """The kinds of the files in `reports/measures/` by their measures, each with its module."""
    names = [f"reports.measures.{path.stem}" for path in sorted(Path(__file__).parent.glob("*.py"))]
    modules = [importlib.import_module(name) for name in names]
    return {
        measure: (kind, module.__name__)
        for module in modules
        for measure, kind in getattr(module, "KINDS", {}).items()
    }
