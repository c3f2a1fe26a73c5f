"""What a table cost in two result sets, the settings in which its cells differ, and two runs of the
speed benchmarks: the JSON files that pytest-benchmark writes with `--benchmark-json`.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fedtables.reports.comparing.rule import COST, NOT_COMPARED, OTHER, SPEED, Difference, Rule
from fedtables.reports.tables.resultset import Key
from fedtables.results.files import ResultsError
from fedtables.results.record import OK, Record

SHORT_S = 10.0
"""Seconds below which a table's time says nothing: start-up and the machine's other work weigh too
much."""
RUN_ALIKE = ("device", "threads", "precision", "compile", "stacked")
"""Entries of a record's `machine` that must agree before time or memory are compared."""
TIMED_ALIKE = ("hardware", "kernels", "cores")
"""For times these too."""
TIME, MEMORY, WHOLE = "time", "peak memory", "all cells"
SLOWER, LARGER = "slower", "larger"
Pairs = Sequence[tuple[Record, Record]]


def settings_of(table: str, base: Sequence[Record], new: Sequence[Record]) -> list[Difference]:
    """One line that names the settings in which the cells of both sets differ; none if they do
    not.
    """
    changes = dict.fromkeys(
        f"{name} {was.config.get(name)} -> {now.config.get(name)}"
        for was, now in _pairs(base, new)
        for name in sorted(was.config.keys() | now.config.keys())
        if was.config.get(name) != now.config.get(name)
    )
    key = (table, WHOLE, "", "settings")
    return [Difference(key, OTHER, why="; ".join(changes), kind=COST)] if changes else []


def costs_of(
    table: str, base: Sequence[Record], new: Sequence[Record], rule: Rule
) -> list[Difference]:
    """Time and memory of the cells that finished in both sets; one line that says why, where they
    cannot be compared.
    """
    ratios = {TIME: rule.time_ratio, MEMORY: rule.memory_ratio}
    ratios = {what: allowed for what, allowed in ratios.items() if allowed}
    pairs = [(was, now) for was, now in _pairs(base, new) if was.status == now.status == OK]
    why = _not_alike(base, new, pairs)
    if ratios and why:
        key = (table, WHOLE, "", ", ".join(ratios))
        return [Difference(key, NOT_COMPARED, why=why, kind=COST)]
    found = []
    for what, allowed in ratios.items():
        key = (table, WHOLE, "", what)
        if what == MEMORY:
            was, now = (
                max(float(r.peak_memory_mb) for r in side) for side in zip(*pairs, strict=True)
            )
            found.append(_by_ratio(key, (was, now), allowed, LARGER, COST))
            continue
        was, now = (math.fsum(r.seconds for r in side) for side in zip(*pairs, strict=True))
        why = _unlike(pairs, TIMED_ALIKE)
        if not why and was < SHORT_S:
            why = f"the base took {was:.1f} s; times below {SHORT_S:g} s vary too much"
        missing = Difference(key, NOT_COMPARED, why=why, kind=COST)
        found.append(missing if why else _by_ratio(key, (was, now), allowed, SLOWER, COST))
    return found


def _pairs(base: Sequence[Record], new: Sequence[Record]) -> Pairs:
    """The records of cells that both sets have."""
    after = {(r.row, r.column, r.seed): r for r in new}
    places = ((r, after.get((r.row, r.column, r.seed))) for r in base)
    return [(was, now) for was, now in places if now is not None]


def _not_alike(base: Sequence[Record], new: Sequence[Record], pairs: Pairs) -> str:
    """Why neither time nor memory can be compared; empty if they can."""
    if not (base and new):
        sets = " and ".join(name for name, of in (("base", base), ("new", new)) if not of)
        return f"no records beside the CSV ({sets}), so data digests were not compared either"
    if not pairs:
        return "no cell finished in both sets with the same seed"
    was, now = (
        sum(int(r.stages.get("computed", 0)) for r in side) for side in zip(*pairs, strict=True)
    )
    if was != now:
        return f"{was} and {now} stages were computed, the others found in the cache"
    return _unlike(pairs, RUN_ALIKE)


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


def _by_ratio(
    key: Key, pair: tuple[float, float], allowed: float, worse: str, kind: str
) -> Difference:
    """The difference of two times or sizes, a regression if their ratio is above `allowed`."""
    was, now = pair
    ratio = now / was if was else math.inf if now else 1.0
    unit = "MB" if worse == LARGER else "s"
    old, new = (f"{v:,.1f} {unit}" if v >= 10 else f"{v:.3g} {unit}" for v in pair)
    why = f"ratio {ratio:.2f}, {allowed:g} allowed"
    verdict = worse if ratio > allowed else "same"
    return Difference(key, verdict, old, new, why, values=(repr(was), repr(now)), kind=kind)


def read_speed(path: Path) -> tuple[str, Mapping[str, float]]:
    """The machine of one run of the benchmarks, and the median seconds per round by full name of
    the benchmark. Raises ResultsError if the file is not one, or has no benchmark.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        info, found = value["machine_info"], value["benchmarks"]
        cpu = info.get("cpu", {})
        name = cpu.get("brand_raw") or info.get("processor") or info.get("machine")
        medians = {entry["fullname"]: float(entry["stats"]["median"]) for entry in found}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ResultsError(f"{path} is not a file of pytest --benchmark-json: {error}") from error
    if not medians:
        raise ResultsError(f"{path} has no benchmark")
    return f"{name}, {cpu.get('count')} cores", medians


def compare_speed(base: Path, new: Path, allowed: float) -> list[Difference]:
    """The ratio of the medians of every benchmark, where both ran on the same processor; 0 leaves
    the ratios out. A benchmark that vanished is a regression on any machine.
    """
    (machine, before), (other, after) = read_speed(base), read_speed(new)
    why = "the ratio of times is turned off" if not allowed else ""
    why = why if machine == other else f"{machine} and {other}"
    median = ("speed", "", "", "median")
    found = [Difference(median, NOT_COMPARED, why=why, kind=SPEED)] if why else []
    for name in {**before, **after}:
        key, was, now = ("speed", name, "", "median"), before.get(name), after.get(name)
        if was is None:
            found.append(Difference(key, "new", kind=SPEED))
        elif now is None:
            lost = "no such benchmark in the new file"
            found.append(Difference(key, "vanished", why=lost, kind=SPEED))
        elif not why:
            found.append(_by_ratio(key, (was, now), allowed, SLOWER, SPEED))
    return found
