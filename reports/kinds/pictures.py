"""What kinds share whose cells leave arrays: of which seed the picture is, and its rows."""

from __future__ import annotations

from collections.abc import Sequence

from reports.tables.table import Layout, row_title
from results.record import OK, Record


def with_arrays(records: Sequence[Record]) -> list[Record]:
    """The records that are drawn, those of the lowest seed that has any arrays: of every row of it
    that has not failed.
    """
    having = [record for record in records if record.status == OK and record.arrays]
    first = min((record.seed for record in having), default=None)
    return [record for record in having if record.seed == first]


def row_titles(layout: Layout) -> dict[str, str]:
    """Titles of the rows, by key."""
    return {row: row_title(layout, row) for row in layout.rows}
