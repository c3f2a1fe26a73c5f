"""One table of a command: its cells, their records, and what earlier commands left in its files."""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.cells import Cell
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection, table_rows
from fedtables.benchmarks.tables.spec import Paper, Row, Table
from fedtables.results.record import OK, Record
from fedtables.results.store import CellCache, TableFiles


@dataclass
class TableRun:
    """One table of a command: its cells, and the records as they come in."""

    paper: Paper
    table: Table
    selection: Selection
    cells: list[Cell]
    files: TableFiles
    records: dict[str, Record] = field(default_factory=dict)
    """By cell key."""
    broken: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By row of a plug-in, what promises of a method it breaks."""
    before: frozenset[str] | None = None
    """The cells that the table's files had when the command began; None if nobody has looked."""
    others: dict[str, list[Record]] = field(default_factory=dict)
    """By table, the finished records that this command has read for claims on several tables. Runs
    of one command share it."""

    @property
    def name(self) -> str:
        return f"{self.paper.key}/{self.table.key}"

    def read_files(self) -> None:
        """Read the files anew: another command may have written them."""
        for name in ("listed", "whole", "every_cell", "left"):
            vars(self).pop(name, None)

    def all_records(self) -> list[Record]:
        """Records of this command, and of earlier ones into the same folder, in print order.

        So a table can be filled column by column with `--only`, and seed by seed.
        """
        merged = {**{r.cell: r for r in self.finished()}, **self.records}
        order = {cell.key: n for n, cell in enumerate(self.every_cell)}
        judged = [replace(r, contract=self.broken.get(r.row, r.contract)) for r in merged.values()]
        return sorted(judged, key=lambda record: order.get(record.cell, len(order)))

    @functools.cached_property
    def listed(self) -> Mapping[str, Record]:
        """What the files have, by cell, as of the last reading. Raises ResultsError if they are
        damaged.
        """
        return self.files.listed_cells()

    @functools.cached_property
    def whole(self) -> Selection:
        """The selection of all cells that the command finds or computes, and that the files have:
        without `--only`, with the seeds and rows that are listed, unless the files may lose them.
        """
        whole = replace(self.selection, only=None)
        if self.selection.may_lose:
            return whole
        seeds = {record.seed for record in self.listed.values()}
        printed = {row.key for row in self.table.rows}
        known = {row.key for row in self.table.offered}
        known |= registry.methods().keys() | registry.aliases().keys()
        rows = dict.fromkeys(record.row for record in self.listed.values())
        added = [row for row in rows if row not in printed and row in known]
        every = tuple(sorted({*whole.seeds, *seeds}))
        return replace(
            whole,
            seeds=whole.seeds if seeds <= set(whole.seeds) else every,
            add=tuple(dict.fromkeys([*whole.add, *added])),
            drop=(),
        )

    @functools.cached_property
    def every_cell(self) -> tuple[Cell, ...]:
        """The cells of `whole`."""
        return tuple(expand(self.paper, self.table, self.whole, skip_unusable=True))

    @functools.cached_property
    def left(self) -> tuple[Row, ...]:
        """Rows of earlier commands with plug-ins that this one is not given, titled as in the
        table's layout.
        """
        if self.selection.may_lose:
            return ()
        known = {row.key for row in table_rows(self.table, self.whole)}
        keys = dict.fromkeys(r.row for r in self.listed.values() if r.row not in known)
        titles, oracles = self.files.titles() if keys else ({}, frozenset())
        return tuple(Row(key, key, titles.get(key, key), key in oracles) for key in keys)

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows that the files may have: the table's with `--methods` applied, and `left`."""
        return (*table_rows(self.table, self.whole), *self.left)

    def finished(self) -> list[Record]:
        """Records of the listed cells: from the cache, if the present code stands by them, or
        failed. Those of plug-ins that are not given are as they were left.

        Cells that are there now and were not `before` are what another command has left meanwhile:
        they need not be in this one's cache.
        """
        if not self.listed or (self.selection.protocol == "released" and not self.table.released):
            return []
        cache = CellCache()

        def kept(old: Record, code: str) -> Record | None:
            record, _ = cache.get(old.cell, code)
            earlier = self.before is None or old.cell in self.before
            meanwhile = not earlier and old.code == code
            # A failure has no number to doubt, and must not vanish.
            return old if record is None and (meanwhile or old.status != OK) else record

        records = [
            kept(self.listed[cell.key], cell.code)
            for cell in self.every_cell
            if cell.key in self.listed
        ]
        left = {row.key for row in self.left}
        for old in self.listed.values():
            if old.row in left:
                record = kept(old, old.code)
                records.append(record and replace(record, contract=old.contract))
        return [record for record in records if record is not None]

    def lost(self, records: Iterable[Record | Cell]) -> list[str]:
        """What the files have and `records` do not: `row column seed`, or a row alone that the CSV
        has and no record; nothing if the files may lose it.
        """
        if self.selection.may_lose:
            return []
        places = {(r.row, r.column, r.seed) for r in records}
        rows = {row for row, _, _ in places}
        missing = [
            f"{r.row} {r.column} seed {r.seed}"
            for r in self.listed.values()
            if (r.row, r.column, r.seed) not in places
        ]
        return missing or [row for row in self.files.listed_rows() if row not in rows]
