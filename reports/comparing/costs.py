"""What a table cost in two result sets, the settings in which its cells differ, and two runs of the
speed benchmarks: the JSON files that pytest-benchmark writes with `--benchmark-json`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.comparing.rule import (
    COST,
    MEMORY,
    NOT_COMPARED,
    OTHER,
    SETTINGS,
    SPEED,
    TIME,
    WHOLE,
    Difference,
    Rule,
)
from reports.tables.resultset import Key
from results.files import ResultsError
from results.record import OK, Record

SHORT_S = 10.0
"""Seconds below which a table's time says nothing: start-up and the machine's other work weigh too
much."""
RUN_ALIKE = ("device", "threads", "precision", "compile", "stacked")
"""Entries of a record's `machine` that must agree before time or memory are compared; for times
`hardware`, `kernels` and `cores` too."""
TABLE, MEDIAN = "speed", "median"
Pairs = Sequence[tuple[Record, Record]]


def settings_of(table: str, base: Sequence[Record], new: Sequence[Record]) -> list[Difference]:
    """One line that names the settings in which the cells of both sets differ; none if they do
    not.
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
    asked = {TIME: rule.time_ratio, MEMORY: rule.memory_ratio}
    asked = {what: allowed for what, allowed in asked.items() if allowed}
    if not asked:
        return []
    finished = {(r.row, r.column, r.seed): r for r in new if r.status == OK}
    places = [(r, finished.get((r.row, r.column, r.seed))) for r in base if r.status == OK]
    pairs = [(was, now) for was, now in places if now is not None]
    if why := _not_alike(base, new, pairs):
        return [_not_compared((table, WHOLE, "", ", ".join(asked)), why, COST)]
    return [
        (_time if what == TIME else _memory)((table, WHOLE, "", what), pairs, allowed)
        for what, allowed in asked.items()
    ]


def _not_alike(base: Sequence[Record], new: Sequence[Record], pairs: Pairs) -> str:
    """Why neither time nor memory can be compared; empty if they can."""
    if not (base and new):
        sets = " and ".join(name for name, of in (("base", base), ("new", new)) if not of)
        return f"no records beside the CSV ({sets}), so data digests were not compared either"
    if not pairs:
        return "no cell finished in both sets with the same seed"
    was, now = (
        sum(int(record.stages.get("computed", 0)) for record in side)
        for side in zip(*pairs, strict=True)
    )
    if was != now:
        return f"{was} and {now} stages were computed, the others found in the cache"
    return _unlike(pairs, RUN_ALIKE)


def _time(key: Key, pairs: Pairs, allowed: float) -> Difference:
    was, now = (math.fsum(r.seconds for r in side) for side in zip(*pairs, strict=True))
    why = _unlike(pairs, ("hardware", "kernels", "cores"))
    if not why and was < SHORT_S:
        why = f"the base took {was:.1f} s, of which little can be said below {SHORT_S:g} s"
    return _not_compared(key, why, COST) if why else _by_ratio(key, was, now, allowed, "s", COST)


def _memory(key: Key, pairs: Pairs, allowed: float) -> Difference:
    was, now = (max(float(r.peak_memory_mb) for r in side) for side in zip(*pairs, strict=True))
    return _by_ratio(key, was, now, allowed, "MB", COST)


def _unlike(pairs: Pairs, names: Iterable[str]) -> str:
    """The first of the named entries of `machine` in which two records of a cell differ, in
    words.
    """
    for old, new in pairs:
        for name in names:
            was, now = (record.machine.get(name, "not recorded") for record in (old, new))
            if was != now:
                return f"{name} is {was} and {now}"
    return ""


def _not_compared(key: Key, why: str, kind: str) -> Difference:
    return Difference(key, NOT_COMPARED, "", "", why, kind=kind)


def _by_ratio(key: Key, was: float, now: float, allowed: float, unit: str, kind: str) -> Difference:
    """The difference of two times or sizes, a regression if their ratio is above `allowed`."""
    ratio = now / was if was else math.inf if now else 1.0
    old, new = (
        f"{value:,.1f} {unit}" if value >= 10 else f"{value:.3g} {unit}" for value in (was, now)
    )
    worse = "larger" if unit == "MB" else "slower"
    why = f"ratio {ratio:.2f}, {allowed:g} allowed"
    verdict = worse if ratio > allowed else "same"
    return Difference(key, verdict, old, new, why, values=(repr(was), repr(now)), kind=kind)


@dataclass(frozen=True)
class SpeedRun:
    """One run of the benchmarks."""

    machine: str
    """Processor and number of cores."""
    medians: Mapping[str, float]
    """Seconds per round by full name of the benchmark."""


def read_speed(path: Path) -> SpeedRun:
    """Read such a file. Raises ResultsError if it is not one, or has no benchmark."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        info, found = value["machine_info"], value["benchmarks"]
        cpu = info.get("cpu", {})
        name = cpu.get("brand_raw") or info.get("processor") or info.get("machine")
        medians = {entry["fullname"]: float(entry["stats"]["median"]) for entry in found}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ResultsError(
            f"{path} is no file of pytest-benchmark's --benchmark-json: {error}"
        ) from error
    if not medians:
        raise ResultsError(f"{path} has no benchmark")
    return SpeedRun(f"{name}, {cpu.get('count')} cores", medians)


def compare_speed(base: SpeedRun, new: SpeedRun, allowed: float) -> list[Difference]:
    """The ratio of the medians of every benchmark, where both ran on the same processor; 0 leaves
    the ratios out.

    A benchmark that vanished is a regression on any machine.
    """
    why = "the ratio of times is turned off" if not allowed else ""
    if base.machine != new.machine:
        why = f"{base.machine} and {new.machine}"
    differences = [_not_compared((TABLE, "", "", MEDIAN), why, SPEED)] if why else []
    for name in {**base.medians, **new.medians}:
        key, was, now = (TABLE, name, "", MEDIAN), base.medians.get(name), new.medians.get(name)
        if was is None:
            differences.append(Difference(key, "new", "", "", kind=SPEED))
        elif now is None:
            lost = "no such benchmark in the new file"
            differences.append(Difference(key, "vanished", "", "", lost, kind=SPEED))
        elif not why:
            differences.append(_by_ratio(key, was, now, allowed, "s", SPEED))
    return differences
