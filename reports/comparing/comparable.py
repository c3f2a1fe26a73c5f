"""Refuses to compare result sets that have nothing in common, or are of different profile,
protocol, data, data digest or unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reports.tables.resultset import Cell, Key, ResultSet
from results.files import ResultsError
from results.record import Record

WHOLE_TABLE = ("profile", "protocol")
EVERY_CELL = ("data", "origin", "public", "public_origin", "unit")
"""What must agree, per table and per cell."""


NAMED = 3
"""Tables of each set that a refusal names."""


def check_comparable(base: ResultSet, new: ResultSet) -> None:
    """Raises ResultsError, with the first difference."""

    def refuse(where: str, name: str, was: str, now: str, advice: str = "") -> None:
        raise ResultsError(f"{where}: {name} is {was} and {now}; these are not comparable{advice}")

    kinds = [_kinds(result_set.cells) for result_set in (base, new)]
    for table in kinds[0].keys() & kinds[1].keys():
        for name, was, now in zip(WHOLE_TABLE, kinds[0][table], kinds[1][table], strict=True):
            if was != now:
                refuse(table, name, _named(was), _named(now))
    for key in base.cells.keys() & new.cells.keys():
        broken = any(
            cells[key]["status"] != "ok" for cells in (base.cells, new.cells)
        )  # it may have no data
        for name in () if broken else EVERY_CELL:
            # An older CSV has not all of the columns.
            if (
                name in base.cells[key]
                and name in new.cells[key]
                and base.cells[key][name] != new.cells[key][name]
            ):
                refuse(" ".join(key), name, repr(base.cells[key][name]), repr(new.cells[key][name]))
    for table in base.records.keys() & new.records.keys():
        keys = [
            {record.table for record in result_set.records[table]} for result_set in (base, new)
        ]
        if all(keys) and keys[0] != keys[1]:
            refuse(table, "table", _named(keys[0]), _named(keys[1]))
        before, after = (_digests(result_set.records[table]) for result_set in (base, new))
        for place in before.keys() & after.keys():
            if before[place] != after[place]:
                row, column, name = place
                advice = (
                    ": other files or another loader; if that is meant, regenerate the base set"
                )
                refuse(
                    f"{table} {row} {column}",
                    f"digest of {name}",
                    _named(before[place]),
                    _named(after[place]),
                    advice,
                )
    _check_common(base, new)


def _check_common(base: ResultSet, new: ResultSet) -> None:
    """Raises ResultsError for sets without a common table, or without a common cell."""
    tables = [list(dict.fromkeys(key[0] for key in one.cells)) for one in (base, new)]
    common = [table for table in tables[0] if table in tables[1]]
    if not common:
        was, now = (
            ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" * (len(names) > NAMED))
            for names in tables
        )
        raise ResultsError(
            f"the sets have no table in common: {was}; and {now}. Give two folders of the same"
            " level, such as two of one profile"
        )
    if base.cells.keys() & new.cells.keys():
        return
    # A cell that failed has one line, without metric, for all of its measurements.
    for one, other in ((base, new), (new, base)):
        failed = [key for key, line in one.cells.items() if line["status"] != "ok"]
        if any(covers(lost, key) for lost in failed for key in other.cells):
            return
    raise ResultsError(f"the sets have no cell of {', '.join(common[:NAMED])} in common")


def _named(values: Iterable[str]) -> str:
    return " and ".join(map(repr, sorted(values)))


def _kinds(cells: Mapping[Key, Cell]) -> dict[str, list[set[str]]]:
    """By table the values of what must agree over the whole of it."""
    by_table: dict[str, list[set[str]]] = {}
    for key, cell in cells.items():
        for values, name in zip(
            by_table.setdefault(key[0], [set() for _ in WHOLE_TABLE]), WHOLE_TABLE, strict=True
        ):
            values.add(cell[name])
    return by_table


def _digests(records: Iterable[Record]) -> dict[tuple[str, str, str], set[str]]:
    """By row, column and `data` or `public data` the digests over all seeds."""
    digests: dict[tuple[str, str, str], set[str]] = {}
    for record in records:
        named = [
            ("data", record.data),
            ("public data", record.public),
            ("private data", record.private),
        ]
        for name, source in (
            *named,
            *((f"data of {other.get('asked')}", other) for other in record.others),
        ):
            if source.get("digest"):
                digests.setdefault((record.row, record.column, name), set()).add(
                    str(source["digest"])
                )
    return digests


def covers(failed: Key, key: Key) -> bool:
    """Whether the line of a failed cell stands for a measurement, whose column may have keys of its
    own (`epoch=3`).
    """
    return failed[:2] == key[:2] and (not failed[2] or f"{key[2]} ".startswith(f"{failed[2]} "))
