"""Compares two result sets cell by cell: the rule of the regression report (docs/regression.md has
it in full).

With at least two seeds on both sides a metric is worse if Welch's t-test says so, one-sided and at
`alpha`, Holm's correction made over all cells tested, and the loss is at least the smallest effect
that matters. With one seed on a side there is no spread to test against: a metric is worse if it
lost more than the tolerance. A loss is what the metric's direction makes one; of a metric without a
direction any such difference counts as a change. Tolerance and effect are given for a fraction and
scaled to the metric's unit (`metrics/names.py`): 0.02 of an accuracy is 2 in percent, 0.2 of an
inception score, 1 dB; of a metric of which nothing is known it is 2 % of the value. Bytes and
epsilon must be equal. A cell that vanished or failed is a regression; a new one is named. Time and
memory of a table are compared by ratio, where both sets did the same work in the same way on the
same hardware. Sets of different profile, protocol, data, data digest or unit are not compared at
all.

Welch, B. L. (1947), Biometrika 34, 28-35; Holm, S. (1979), Scandinavian Journal of Statistics 6,
65-70.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from metrics.names import TEXTS
from reports.tables.resultset import Cell, Key, ResultSet
from reports.tables.units import Scale, scale_of
from results.files import ResultsError
from results.record import OK, Record

WHOLE_TABLE = ("profile", "protocol")
EVERY_CELL = ("data", "origin", "public", "public_origin", "unit")
"""What must agree, per table and per cell."""
EXACT = ("bytes_up", "bytes_down", "epsilon", "delta")
SHORT_S = 10.0
"""Seconds below which a table's time says nothing: start-up and the machine's other work weigh too
much."""
RUN_ALIKE = ("device", "threads", "precision", "compile", "stacked")
"""Entries of a record's `machine` that must agree before time or memory are compared; for times
`hardware` and `cores` too."""
CELL, COST, SPEED = "cell", "cost", "speed"
"""Kinds of differences: a cell of a table, a table's time or memory, a speed benchmark."""
NOT_COMPARED = "not compared"
UNDECIDED = "undecided"
OTHER = "other"
WHOLE, TIME, MEMORY, SETTINGS = "all cells", "time", "peak memory", "settings"

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True)
class Rule:
    """The numbers of the rule."""

    tolerance: float = 0.02
    """Loss that one seed may show, of a fraction; assumed."""
    effect: float = 0.005
    """Smallest significant loss that matters with more seeds, of a fraction; assumed."""
    alpha: float = 0.05
    """Chance that any cell at all is wrongly called worse, where nothing but the seeds differs; the
    customary one."""
    time_ratio: float = 2.0
    """Largest ratio of times; 0 leaves them out. Assumed: shared machines differ by less from run
    to run."""
    memory_ratio: float = 1.5
    """Largest ratio of peak memory; 0 leaves it out. Assumed."""
    exact: bool = False
    """Whether a value must be the same to the last digit where seeds, machine and packages are:
    this suite's promise."""


@dataclass(frozen=True)
class Difference:
    """What became of one cell, of a table's cost, or of a speed benchmark."""

    cell: Key
    verdict: str
    """`same`, `better`, `worse`, `vanished`, `failed`, `new`, `changed` (bytes, epsilon, a metric
    without direction; with `exact` any) or `undecided` (a loss above the tolerance that the seeds'
    spread leaves open); of costs and speed also `slower`, `larger` and `not compared`, of a table's
    settings `other`."""
    base: str
    """The value as printed."""
    new: str
    why: str = ""
    p: float | None = None
    """Of the test, if there was one, before the correction."""
    values: tuple[str, str] = ("", "")
    """Base and new with all digits."""
    kind: str = CELL

    @property
    def is_regression(self) -> bool:
        return self.verdict in ("worse", "vanished", "failed", "changed", "slower", "larger")

    @property
    def name(self) -> str:
        return " ".join(part for part in self.cell if part)


def compare(base: ResultSet, new: ResultSet, rule: Rule) -> list[Difference]:
    """Every cell's difference, and every table's time and memory.

    Raises ResultsError if the sets differ in profile, protocol, data, data digest or unit.
    """
    _check_comparable(base, new)
    found: dict[Key, Difference] = {}
    broken = {key: line["status"] for key, line in new.cells.items() if line["status"] != "ok"}
    for key, old in base.cells.items():
        now = new.cells.get(key)
        if old["status"] != "ok":
            found[key] = _once_failed(key, now, new)
        elif now is None:
            # A cell that failed has one line, without metric, for all of its measurements.
            status = next((status for failed, status in broken.items() if _covers(failed, key)), "")
            verdict, why = (
                ("failed", status) if status else ("vanished", "no such cell in the new set")
            )
            found[key] = Difference(key, verdict, _text(old), "", why, values=(old["value"], ""))
        else:
            found[key] = _judge(key, old, now, rule)
    _test(found, base, new, rule)
    if rule.exact:
        _demand_equal(found, base, new)
    for key, now in new.cells.items():
        if key not in base.cells and not (
            key in broken and any(_covers(key, known) for known in base.cells)
        ):
            verdict, why = ("new", "") if now["status"] == "ok" else ("failed", now["status"])
            found[key] = Difference(key, verdict, "", _text(now), why, values=("", now["value"]))
    settings = [
        _settings(table, base.records[table], new.records[table])
        for table in base.records
        if table in new.records
    ]
    costs = [
        _costs(table, base.records[table], new.records[table], rule)
        for table in base.records
        if table in new.records
    ]
    return [*found.values(), *(difference for table in (*settings, *costs) for difference in table)]


def holm(p_values: Mapping[T, float], alpha: float) -> set[T]:
    """Hypotheses that Holm's step-down procedure rejects at the family-wise level `alpha`."""
    rejected: set[T] = set()
    for rank, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        if p > alpha / (len(p_values) - rank):
            break  # the first that is not significant ends it
        rejected.add(name)
    return rejected


def _check_comparable(base: ResultSet, new: ResultSet) -> None:
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


def _named(values: Iterable[str]) -> str:
    return " and ".join(map(repr, sorted(values)))


def _kinds(cells: Mapping[Key, Cell]) -> dict[str, list[set[str]]]:
    """By table the values of what must agree over the whole of it."""
    found: dict[str, list[set[str]]] = {}
    for key, cell in cells.items():
        for values, name in zip(
            found.setdefault(key[0], [set() for _ in WHOLE_TABLE]), WHOLE_TABLE, strict=True
        ):
            values.add(cell[name])
    return found


def _digests(records: Iterable[Record]) -> dict[tuple[str, str, str], set[str]]:
    """By row, column and `data` or `public data` the digests over all seeds."""
    found: dict[tuple[str, str, str], set[str]] = {}
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
                found.setdefault((record.row, record.column, name), set()).add(
                    str(source["digest"])
                )
    return found


def _covers(failed: Key, key: Key) -> bool:
    """Whether the line of a failed cell stands for a measurement, whose column may have keys of its
    own (`epoch=3`).
    """
    return failed[:2] == key[:2] and (not failed[2] or f"{key[2]} ".startswith(f"{failed[2]} "))


def _once_failed(key: Key, now: Cell | None, new: ResultSet) -> Difference:
    if now is not None:
        return Difference(key, "same", "", "", "failed in the base set too")
    if any(_covers(key, other) for other in new.cells):
        return Difference(key, "better", "", "", "failed in the base set")
    return Difference(
        key, "vanished", "", "", "failed in the base set, no such cell in the new set"
    )


def _judge(key: Key, old: Cell, now: Cell, rule: Rule) -> Difference:
    """The difference of a cell that both sets have, before the correction for the number of
    tests.
    """
    remarks = [f"{n} {old[n] or 'none'} -> {now[n] or 'none'}" for n in EXACT if old[n] != now[n]]
    verdict, p = "changed" if remarks else "same", None
    values = old["value"], now["value"]
    if key[3] in TEXTS:
        verdict = verdict if values[0] == values[1] else "worse"
    elif not all(math.isfinite(float(value)) for value in values):
        if values[0] != values[1]:
            verdict = (
                "worse" if math.isfinite(float(values[0])) else verdict if remarks else "better"
            )
            remarks.append("not finite")
    else:
        scale = scale_of(key[3], old["unit"])
        loss = _loss(float(values[0]), float(values[1]), scale.sign)
        remarks.append(f"{'loss' if scale.sign else 'distance'} {loss:+.{scale.digits}f}")
        if all(old[name] == now[name] for name in ("value", "std", "n")):
            remarks.append(
                "identical"
            )  # it cannot be a false alarm, and takes no part in the correction
        elif old["std"] and now["std"]:
            p = _welch(old, now, scale.sign)
            remarks.append(f"p = {p:.2g}")
        else:
            allowed = scale.allowance(rule.tolerance, float(values[0]))
            remarks.append(f"one seed, tolerance {allowed:g}")
            if verdict == "same":
                verdict = (
                    _worse(scale) if loss > allowed else "better" if loss < -allowed else "same"
                )
    for name in ("seeds", "statistic"):
        if old.get(name) and now.get(name) and old[name] != now[name]:
            remarks.append(f"{name} {old[name]} -> {now[name]}")
    return Difference(key, verdict, _text(old), _text(now), ", ".join(remarks), p, values)


def _test(found: dict[Key, Difference], base: ResultSet, new: ResultSet, rule: Rule) -> None:
    """Put the verdicts of the tests into `found`: one family for what is worse, another for what is
    better.
    """
    tested = {key: d.p for key, d in found.items() if d.p is not None}
    signs = {key: scale_of(key[3], base.cells[key]["unit"]).sign for key in tested}
    worse = holm(tested, rule.alpha)
    better = holm({key: 1 - p for key, p in tested.items() if signs[key]}, rule.alpha)
    for key in worse | better:
        scale = scale_of(key[3], base.cells[key]["unit"])
        value = float(base.cells[key]["value"])
        loss = _loss(value, float(new.cells[key]["value"]), scale.sign)
        if (
            found[key].verdict == "same"
            and loss
            and abs(loss) >= scale.allowance(rule.effect, value)
        ):
            verdict = _worse(scale) if loss > 0 else "better"
            found[key] = replace(found[key], verdict=verdict, why=f"{found[key].why} (Welch, Holm)")
    for key in tested:
        scale = scale_of(key[3], base.cells[key]["unit"])
        value = float(base.cells[key]["value"])
        loss = _loss(value, float(new.cells[key]["value"]), scale.sign)
        if found[key].verdict == "same" and loss > scale.allowance(rule.tolerance, value):
            why = (
                f"{found[key].why}: more than one seed may lose, too much spread to decide; add"
                " seeds"
            )
            found[key] = replace(found[key], verdict=UNDECIDED, why=why)


def _demand_equal(found: dict[Key, Difference], base: ResultSet, new: ResultSet) -> None:
    """Call a cell `changed` whose value moved though its records were made with the same seeds,
    machine and packages.
    """
    runs = [
        {t: _runs(records) for t, records in result_set.records.items()}
        for result_set in (base, new)
    ]
    for key, difference in found.items():
        was, now = (of_table.get(key[0], {}) for of_table in runs)
        places = [place for place in was if _covers((key[0], *place[:2], ""), key)]
        alike = bool(places) and all(was[place] == now.get(place) for place in places)
        if (
            alike
            and difference.verdict in ("same", "better", UNDECIDED)
            and difference.values[0] != difference.values[1]
        ):
            found[key] = replace(
                difference,
                verdict="changed",
                why=f"{difference.why}; not identical on the same machine",
            )


def _runs(records: Iterable[Record]) -> dict[tuple[str, str, int], object]:
    """What must agree, by row, column and seed, before two runs have to give the same digits."""
    names = ("hardware", "system", "python", "packages", *RUN_ALIKE)
    return {(r.row, r.column, r.seed): [r.machine.get(name) for name in names] for r in records}


def _welch(base: Cell, new: Cell, sign: int) -> float:
    """One-sided p-value that `new` is worse than `base`; two-sided for a metric without
    direction.
    """
    from scipy.stats import ttest_ind_from_stats

    (m1, s1, n1), (m2, s2, n2) = (
        (float(c["value"]), float(c["std"]), int(c["n"])) for c in (base, new)
    )
    if s1 == s2 == 0:
        loss = _loss(m1, m2, sign)
        return 0.0 if loss > 0 else 1.0 if loss < 0 or not sign else 0.5
    alternative = {1: "less", -1: "greater", 0: "two-sided"}[sign]
    return float(
        ttest_ind_from_stats(
            m2, s2, n2, m1, s1, n1, equal_var=False, alternative=alternative
        ).pvalue
    )


def _loss(base: float, new: float, sign: int) -> float:
    """By how much `new` is worse; the distance for a metric without direction."""
    return sign * (base - new) if sign else abs(base - new)


def _worse(scale: Scale) -> str:
    return "worse" if scale.sign else "changed"


def _text(cell: Cell) -> str:
    scale = scale_of(cell["metric"], cell["unit"])
    return scale.text(cell["value"]) + (f" ± {scale.text(cell['std'])}" if cell["std"] else "")


def _settings(table: str, base: Sequence[Record], new: Sequence[Record]) -> list[Difference]:
    """One line that names the settings in which the cells of both sets differ, and the commits;
    none if they do not.
    """
    after = {(r.row, r.column, r.seed): r.config for r in new}
    found: dict[str, None] = {}
    for record in base:
        now = after.get((record.row, record.column, record.seed), record.config)
        for name in sorted(record.config.keys() | now.keys()):
            if record.config.get(name) != now.get(name):
                found[f"{name} {record.config.get(name)} -> {now.get(name)}"] = None
    if not found:
        return []
    return [Difference((table, WHOLE, "", SETTINGS), OTHER, "", "", "; ".join(found), kind=COST)]


def _costs(
    table: str, base: Sequence[Record], new: Sequence[Record], rule: Rule
) -> list[Difference]:
    """Time and memory of the cells that finished in both sets; one line that says why, where they
    cannot be compared.
    """
    if not (rule.time_ratio or rule.memory_ratio):
        return []
    everything = ", ".join(
        what for what, allowed in ((TIME, rule.time_ratio), (MEMORY, rule.memory_ratio)) if allowed
    )

    def leave_out(what: str, why: str) -> Difference:
        return not_compared(table, WHOLE, what, why, COST)

    if not (base and new):
        sets = " and ".join(name for name, records in (("base", base), ("new", new)) if not records)
        return [
            leave_out(
                everything,
                f"no records beside the CSV ({sets}), so data digests were not compared either",
            )
        ]
    finished = [
        {(r.row, r.column, r.seed): r for r in records if r.status == OK} for records in (base, new)
    ]
    pairs = [
        (old, finished[1][place]) for place, old in finished[0].items() if place in finished[1]
    ]
    if not pairs:
        return [leave_out(everything, "no cell finished in both sets with the same seed")]
    work = [
        sum(int(record.stages.get("computed", 0)) for record in side)
        for side in zip(*pairs, strict=True)
    ]
    if work[0] != work[1]:
        return [
            leave_out(
                everything,
                f"{work[0]} and {work[1]} stages were computed, the others found in the cache",
            )
        ]
    if unlike := _unlike(pairs, RUN_ALIKE):
        return [leave_out(everything, unlike)]
    found = []
    if rule.time_ratio:
        was, now = (
            math.fsum(float(record.seconds) for record in side) for side in zip(*pairs, strict=True)
        )
        why = _unlike(pairs, ("hardware", "cores"))
        if not why and was < SHORT_S:
            why = f"the base took {was:.1f} s, of which little can be said below {SHORT_S:g} s"
        time = by_ratio((table, WHOLE, "", TIME), was, now, rule.time_ratio, "s", "slower", COST)
        found.append(leave_out(TIME, why) if why else time)
    if rule.memory_ratio:
        was, now = (
            max(float(record.peak_memory_mb) for record in side)
            for side in zip(*pairs, strict=True)
        )
        found.append(
            by_ratio((table, WHOLE, "", MEMORY), was, now, rule.memory_ratio, "MB", "larger", COST)
        )
    return found


def _unlike(pairs: Iterable[tuple[Record, Record]], names: Iterable[str]) -> str:
    """The first of the named entries of `machine` in which two records of a cell differ, in
    words.
    """
    for old, new in pairs:
        for name in names:
            was, now = (record.machine.get(name, "not recorded") for record in (old, new))
            if was != now:
                return f"{name} is {was} and {now}"
    return ""


def not_compared(table: str, row: str, what: str, why: str, kind: str) -> Difference:
    """What was left out, and why."""
    return Difference((table, row, "", what), NOT_COMPARED, "", "", why, kind=kind)


def by_ratio(
    key: Key, was: float, now: float, allowed: float, unit: str, verdict: str, kind: str
) -> Difference:
    """The difference of two times or sizes: `verdict` if their ratio is above `allowed`."""
    ratio = now / was if was else math.inf if now else 1.0
    old, new = (
        f"{value:,.1f} {unit}" if value >= 10 else f"{value:.3g} {unit}" for value in (was, now)
    )
    why = f"ratio {ratio:.2f}, {allowed:g} allowed"
    return Difference(
        key,
        verdict if ratio > allowed else "same",
        old,
        new,
        why,
        values=(repr(was), repr(now)),
        kind=kind,
    )
