"""What a table cost in two result sets, and the settings in which its cells differ."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from reports.comparing.rule import (
    COST,
    MEMORY,
    NOT_COMPARED,
    OTHER,
    SETTINGS,
    TIME,
    WHOLE,
    Difference,
    Rule,
)
from reports.tables.resultset import Key
from results.record import OK, Record

SHORT_S = 10.0
"""Seconds below which a table's time says nothing: start-up and the machine's other work weigh too
much."""
RUN_ALIKE = ("device", "threads", "precision", "compile", "stacked")
"""Entries of a record's `machine` that must agree before time or memory are compared; for times
`hardware`, `kernels` and `cores` too."""


def settings_of(table: str, base: Sequence[Record], new: Sequence[Record]) -> list[Difference]:
    """One line that names the settings in which the cells of both sets differ, and the commits;
    none if they do not.
    """
    after = {(r.row, r.column, r.seed): r.config for r in new}
    changes: dict[str, None] = {}
    for record in base:
        now = after.get((record.row, record.column, record.seed), record.config)
        for name in sorted(record.config.keys() | now.keys()):
            if record.config.get(name) != now.get(name):
                changes[f"{name} {record.config.get(name)} -> {now.get(name)}"] = None
    if not changes:
        return []
    return [Difference((table, WHOLE, "", SETTINGS), OTHER, "", "", "; ".join(changes), kind=COST)]


def costs_of(
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
    differences = []
    if rule.time_ratio:
        was, now = (
            math.fsum(float(record.seconds) for record in side) for side in zip(*pairs, strict=True)
        )
        why = _unlike(pairs, ("hardware", "kernels", "cores"))
        if not why and was < SHORT_S:
            why = f"the base took {was:.1f} s, of which little can be said below {SHORT_S:g} s"
        time = by_ratio((table, WHOLE, "", TIME), was, now, rule.time_ratio, "s", "slower", COST)
        differences.append(leave_out(TIME, why) if why else time)
    if rule.memory_ratio:
        was, now = (
            max(float(record.peak_memory_mb) for record in side)
            for side in zip(*pairs, strict=True)
        )
        differences.append(
            by_ratio((table, WHOLE, "", MEMORY), was, now, rule.memory_ratio, "MB", "larger", COST)
        )
    return differences


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
