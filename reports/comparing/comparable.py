"""Refuses to compare result sets that have nothing in common, or are of different profile,
protocol, data, data digest or unit.
"""

from __future__ import annotations

from reports.tables.resultset import Key, ResultSet
from results.files import ResultsError
from results.record import OK

WHOLE_TABLE = ("profile", "protocol")
EVERY_CELL = ("data", "origin", "public", "public_origin", "unit")
"""What must agree, per table and per cell; an older CSV has not all of them."""
ADVICE = ": other files or another loader; if that is meant, regenerate the base set"


def check_comparable(base: ResultSet, new: ResultSet) -> None:
    """Raises ResultsError, with the first difference."""
    was, now = _facts(base), _facts(new)
    for where, name in was:
        before, after = was[where, name], now.get((where, name), was[where, name])
        if before != after:
            texts = " and ".join(" and ".join(map(repr, sorted(of))) for of in (before, after))
            advice = ADVICE if name.startswith("digest") else ""
            raise ResultsError(f"{where}: {name} is {texts}; these are not comparable{advice}")
    _check_common(base, new)


def _facts(results: ResultSet) -> dict[tuple[str, str], set[str]]:
    """All that must agree where both sets say it: values by table or cell, and by name."""
    found: dict[tuple[str, str], set[str]] = {}

    def have(where: str, name: str, value: object) -> None:
        found.setdefault((where, name), set()).add(str(value))

    for key, line in results.cells.items():
        for name in WHOLE_TABLE:
            have(key[0], name, line[name])
        for name in EVERY_CELL if line["status"] == OK else ():
            if name in line:
                have(" ".join(key), name, line[name])
    for table, records in results.records.items():
        for r in records:
            have(table, "table", r.table)
            data = {"data": r.data, "public data": r.public, "private data": r.private}
            data |= {f"data of {other.get('asked')}": other for other in r.others}
            for name, source in data.items():
                if source.get("digest"):
                    have(f"{table} {r.row} {r.column}", f"digest of {name}", source["digest"])
    return found


def _check_common(base: ResultSet, new: ResultSet) -> None:
    """Raises ResultsError for sets without a common table, or without a common cell."""
    was, now = (list(dict.fromkeys(key[0] for key in one.cells)) for one in (base, new))
    common = [table for table in was if table in now]
    if not common:
        raise ResultsError(
            f"the sets have no table in common: {', '.join(was[:3])}; and {', '.join(now[:3])}."
            " Give two folders of the same level, such as two of one profile"
        )
    if base.cells.keys() & new.cells.keys():
        return
    for one, other in ((base, new), (new, base)):
        failed = [key for key, line in one.cells.items() if line["status"] != OK]
        if any(covers(lost, key) for lost in failed for key in other.cells):
            return
    raise ResultsError(f"the sets have no cell of {', '.join(common[:3])} in common")


def covers(failed: Key, key: Key) -> bool:
    """Whether the line of a failed cell, which has no metric, stands for a measurement, whose
    column may have keys of its own (`epoch=3`).
    """
    return failed[:2] == key[:2] and (not failed[2] or f"{key[2]} ".startswith(f"{failed[2]} "))
