"""What may be compared: refuses result sets that have nothing in common, or are of different
profile, protocol, data, data digest or unit. And what a number may differ by between two machines
though the code is the same: what a small test set can tell, and what rounding does to a run
(docs/howto/regression.md has both, measured).
"""

import math
from collections.abc import Iterable, Mapping

from fedtables.metrics.names import facts
from fedtables.reports.comparing.costs import RUN_ALIKE
from fedtables.reports.tables.resultset import Key, ResultSet
from fedtables.reports.tables.units import scale_of
from fedtables.results.files import ResultsError
from fedtables.results.record import OK, TEXTS, Record

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


MACHINE = ("hardware", "kernels", "system", "python", *RUN_ALIKE)
"""Entries of a record's `machine` that must agree, beside the packages, before two runs have to
give the same digits."""


def same_machine(base: Record, new: Record) -> bool:
    """Whether two records name the same machine, and the same versions of the packages that both
    name; older records name fewer entries.
    """
    both = base.machine.keys() & new.machine.keys() & {*MACHINE}
    packages = (record.machine.get("packages", {}) for record in (base, new))
    return all(base.machine[name] == new.machine[name] for name in both) and not other_versions(
        *packages
    )


def other_versions(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The packages that two records name in different versions."""
    return {name: (old[name], new[name]) for name in old if new.get(name, old[name]) != old[name]}


def records_of(key: Key, results: ResultSet) -> list[Record]:
    """The records behind a line of a table's CSV, by seed; none where the CSV stands alone."""
    table = results.records.get(key[0], ())
    behind = [record for record in table if covers((key[0], record.row, record.column, ""), key)]
    return sorted(behind, key=lambda record: record.seed)


def run_noise(key: Key, base: ResultSet, new: ResultSet) -> float:
    """Standard deviation of one run's value from the test set and from rounding, in the table's
    unit, of a cell of numbers that another machine made in `new`.

    0 on the same machine, where nothing is known of it, and for what is counted.
    """
    was, now = records_of(key, base), records_of(key, new)
    if key[3] in TEXTS or all(same_machine(a, b) for a in was for b in now):
        return 0.0
    values = [results.cells[key]["value"] for results in (base, new)]
    samples = max(record.test_samples for record in (*was, *now))
    return spread(key[3], base.cells[key]["unit"], values, samples)


def spread(metric: str, unit: str, values: Iterable[float], samples: int) -> float:
    """Standard deviation of one run's value of `metric` from rounding and, for a share of `samples`
    test samples that are right, the binomial one. `values` are those of both sides; 0 samples: not
    recorded.

    The binomial share is the mean of both sides, as where two shares are tested for equality. It is
    generous: both sides have the same test set, and only the samples that they judge differently
    move a share. Of a metric without a scale rounding counts as a share of the smaller value.
    """
    known = facts(metric)
    base, new = values
    whole = scale_of(metric, unit).whole
    if whole is None:
        whole = min(abs(base), abs(new))
    rounding = known.rounding * whole
    if not (known.of_samples and samples):
        return rounding
    share = (base + new) / 2 / whole
    return math.hypot(rounding, whole * math.sqrt(max(0.0, share * (1 - share)) / samples))
