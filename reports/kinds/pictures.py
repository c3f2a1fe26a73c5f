"""What kinds share whose cells leave arrays that a picture is drawn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from reports.kinds.kind import Kind
from reports.tables.table import Layout, ShownTable, row_title
from results.arrays import unpack
from results.record import OK, Record

Arrays = Mapping[str, Mapping[str, np.ndarray]]
"""By name, or a row's key, and by what stands behind a `/`, such as a site."""


class Pictured(Kind):
    """A picture of the arrays of one seed, beside the numbers."""

    made: str = "predicted"
    """The name of what a row's own cell makes, in its arrays."""
    which: str = ""
    """What the picture shows, in words; empty for nothing to say."""
    of_seed: str = ","
    """What stands between that and the seed."""

    def remarks(self, table: ShownTable) -> list[str]:
        drawn = with_arrays(table.records)
        if not drawn or not self.which:
            return []
        several = len({record.seed for record in table.records}) > 1
        return [self.which + (f"{self.of_seed} of seed {drawn[0].seed}" if several else "")]

    def draw(self, table: ShownTable, path: Path) -> None:
        if drawn := with_arrays(table.records):
            self.picture(arrays_of(drawn, self.made), table.layout, path, drawn)

    def picture(self, arrays: Arrays, layout: Layout, path: Path, drawn: Sequence[Record]) -> None:
        """Draw the arrays of the records `drawn` into the PNG `path`."""
        raise NotImplementedError


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


def titles_of(layout: Layout, arrays: Arrays, places: Sequence[str] = ("",)) -> dict[str, str]:
    """Titles, by key, of the rows that made something of each of `places`."""
    return {
        row: row_title(layout, row)
        for row in layout.rows
        if set(places) <= arrays.get(row, {}).keys()
    }
