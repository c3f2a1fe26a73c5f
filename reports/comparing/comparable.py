"""Refuses to compare result sets that have nothing in common, or are of different profile,
protocol, data, data digest or unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reports.tables.resultset import Key, ResultSet
from results.files import ResultsError
from results.record import OK, Record

WHOLE_TABLE = ("profile", "protocol")
EVERY_CELL = ("data", "origin", "public", "public_origin", "unit")
"""What must agree, per table and per cell."""
NAMED = 3
"""Tables of each set that a refusal names."""
ADVICE = ": other files or another loader; if that is meant, regenerate the base set"


def check_comparable(base: ResultSet, new: ResultSet) -> None:
    """Raises ResultsError, with the first difference."""
    for differing in (_tables, _cells, _digests):
        for why in differing(base, new):
            raise ResultsError(why)
    _check_common(base, new)


def _refusal(where: str, name: str, was: Iterable[str], now: Iterable[str]) -> str:
    texts = (" and ".join(map(repr, sorted(values))) for values in (was, now))
    return f"{where}: {name} is {' and '.join(texts)}; these are not comparable"


def _tables(base: ResultSet, new: ResultSet) -> Iterator[str]:
    """Tables of another profile, protocol or, by their records, name."""
    for name in WHOLE_TABLE:
        was, now = _values(base, name), _values(new, name)
        for table in was.keys() & now.keys():
            if was[table] != now[table]:
                yield _refusal(table, name, was[table], now[table])
    for table in base.records.keys() & new.records.keys():
        keys = [{record.table for record in one.records[table]} for one in (base, new)]
        if all(keys) and keys[0] != keys[1]:
            yield _refusal(table, "table", *keys)


def _values(results: ResultSet, name: str) -> dict[str, set[str]]:
    """By table all that its lines say under one name."""
    found: dict[str, set[str]] = {}
    for key, cell in results.cells.items():
        found.setdefault(key[0], set()).add(cell[name])
    return found


def _cells(base: ResultSet, new: ResultSet) -> Iterator[str]:
    """Cells of other data or unit. One that failed may have no data, and an older CSV has not all
    of the columns.
    """
    for key in (key for key in base.cells if key in new.cells):
        was, now = base.cells[key], new.cells[key]
        both_ok = was["status"] == now["status"] == OK
        for name in EVERY_CELL if both_ok else ():
            if was.get(name, now.get(name)) != now.get(name, was.get(name)):
                yield _refusal(" ".join(key), name, [was[name]], [now[name]])


def _digests(base: ResultSet, new: ResultSet) -> Iterator[str]:
    """Cells whose data have another digest."""
    for table in (table for table in base.records if table in new.records):
        before, after = (_digests_of(one.records[table]) for one in (base, new))
        for place in before:
            if before[place] != after.get(place, before[place]):
                row, column, name = place
                where = f"{table} {row} {column}"
                yield _refusal(where, f"digest of {name}", before[place], after[place]) + ADVICE


def _digests_of(records: Iterable[Record]) -> dict[tuple[str, str, str], set[str]]:
    """By row, column and kind of data the digests over all seeds."""
    digests: dict[tuple[str, str, str], set[str]] = {}
    for r in records:
        named = {"data": r.data, "public data": r.public, "private data": r.private}
        named |= {f"data of {other.get('asked')}": other for other in r.others}
        for name, source in named.items():
            if source.get("digest"):
                digests.setdefault((r.row, r.column, name), set()).add(str(source["digest"]))
    return digests


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
        failed = [key for key, line in one.cells.items() if line["status"] != OK]
        if any(covers(lost, key) for lost in failed for key in other.cells):
            return
    raise ResultsError(f"the sets have no cell of {', '.join(common[:NAMED])} in common")


def covers(failed: Key, key: Key) -> bool:
    """Whether the line of a failed cell stands for a measurement, whose column may have keys of its
    own (`epoch=3`).
    """
    return failed[:2] == key[:2] and (not failed[2] or f"{key[2]} ".startswith(f"{failed[2]} "))
