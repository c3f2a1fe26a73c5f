"""Compares two result sets cell by cell, by the rule that docs/howto/regression.md has in full.

With at least two seeds on both sides a metric is judged by Welch's test, with Holm's correction
over all cells tested; with one measurement on a side by a tolerance; between two machines with the
spread that every run has there (`comparable.py`). Bytes and epsilon must be equal. A value that
moved by no more than the rule explains is counted apart from those that are the same to the last
digit.
"""

import math
from typing import NamedTuple

from fedtables.reports.comparing.comparable import (
    check_comparable,
    covers,
    records_of,
    run_noise,
    same_machine,
)
from fedtables.reports.comparing.costs import costs_of, settings_of
from fedtables.reports.comparing.rule import (
    ANOTHER_MACHINE,
    MOVED,
    UNDECIDED,
    Difference,
    Rule,
    explained,
    holm,
    loss_of,
    measurements,
    p_value,
)
from fedtables.reports.tables.resultset import Key, ResultSet
from fedtables.reports.tables.table import share_of
from fedtables.reports.tables.units import scale_of
from fedtables.results.record import OK, TEXTS
from fedtables.results.store import Line, format_value

EXACT = {"bytes_up": "bytes up", "bytes_down": "bytes down", "epsilon": "ε", "delta": "δ"}
"""What must be equal, with its name in a report."""


class Test(NamedTuple):
    """What is known of a cell's value over seeds and machines."""

    noise: float
    """Standard deviation that one run has anyway, between machines."""
    p: float | None
    """None of what is not tested."""
    significant: bool = False
    """Whether it is worse or better beyond the level for all cells together."""
    level: float = 1.0
    """Of a single one, where all tested have a share in the rule's."""


def compare_results(base: ResultSet, new: ResultSet, rule: Rule) -> list[Difference]:
    """Every cell's difference, and every table's time and memory.

    Raises ResultsError if the sets have no cell in common, or differ in profile, protocol, data,
    data digest or unit.
    """
    check_comparable(base, new)
    tests = _tests(base, new, rule.alpha)
    cells = [
        _judged(key, base, new, rule, tests[key]) if key in tests else _lost(key, old, new)
        for key, old in base.cells.items()
    ]
    for key, now in new.cells.items():
        failed = now["status"] != OK
        if key not in base.cells and not (failed and any(covers(key, b) for b in base.cells)):
            verdict, why = ("failed", now["status"]) if failed else ("new", "")
            values = ("", format_value(now["value"]))
            cells.append(Difference(key, verdict, "", _text(now), why, values=values))
    both = [(t, base.records[t], new.records[t]) for t in base.records if t in new.records]
    settings = [found for table in both for found in settings_of(*table)]
    costs = [found for table in both for found in costs_of(*table, rule)]
    return [*cells, *settings, *costs]


def _tests(base: ResultSet, new: ResultSet, alpha: float) -> dict[Key, Test]:
    """Of every cell that both sets measured its test, corrected for the number of all: one family
    for what is worse, another for what is better.
    """
    found = {}
    for key, old in base.cells.items():
        if old["status"] == OK and key in new.cells:
            now, noise = new.cells[key], run_noise(key, base, new)
            one = not noise and min(measurements(old, now)) < 2
            # What is identical cannot be a false alarm, and takes no part in the correction.
            plain = one or key[3] in TEXTS or not _finite(old, now) or _identical(old, now)
            p = None if plain else p_value(old, now, scale_of(key[3], old["unit"]).sign, noise)
            found[key] = Test(noise, p)
    tested = {key: test.p for key, test in found.items() if test.p is not None}
    signs = {key: scale_of(key[3], base.cells[key]["unit"]).sign for key in tested}
    significant = holm(tested, alpha)
    significant |= holm({key: 1 - p for key, p in tested.items() if signs[key]}, alpha)
    level = alpha / max(1, len(tested))
    return {
        key: test._replace(significant=key in significant, level=level)
        for key, test in found.items()
    }


def _finite(old: Line, now: Line) -> bool:
    return all(math.isfinite(line["value"]) for line in (old, now))


def _identical(old: Line, now: Line) -> bool:
    return all(old[name] == now[name] for name in ("value", "std", "n"))


def _lost(key: Key, old: Line, new: ResultSet) -> Difference:
    """A cell that failed in the base set, or that the new set lacks. One that failed has one line,
    without metric, for all of its measurements.
    """
    if old["status"] != OK:
        before = "failed in the base set"
        if key in new.cells:
            return Difference(key, "same", why=f"{before} too")
        if any(covers(key, other) for other in new.cells):
            return Difference(key, "better", why=before)
        return Difference(key, "vanished", why=f"{before}, no such cell in the new set")
    broken = {other: line["status"] for other, line in new.cells.items() if line["status"] != OK}
    status = next((why for other, why in broken.items() if covers(other, key)), "")
    verdict, why = ("failed", status) if status else ("vanished", "no such cell in the new set")
    return Difference(key, verdict, _text(old), "", why, values=(format_value(old["value"]), ""))


def _judged(key: Key, base: ResultSet, new: ResultSet, rule: Rule, test: Test) -> Difference:
    """The difference of a cell that both sets have; the worst of what is said of it counts. If the
    rule is `exact`, another value of runs that are alike is a change, better or not.
    """
    old, now = base.cells[key], new.cells[key]
    moved = [name for name in EXACT if old[name] != now[name]]
    verdict, remarks = _of_value(key[3], old, now, rule, test)
    shares = _shares(old, now)
    if verdict != "worse" and (moved or shares):
        verdict = "changed"
    remarks = [*(_account(name, old[name], now[name]) for name in moved), *remarks, *shares]
    for name in ("seeds", "statistic"):
        if old.get(name) and now.get(name) and old[name] != now[name]:
            remarks.append(f"{name} {old[name]} -> {now[name]}")
    why = ", ".join(remarks)
    values = format_value(old["value"]), format_value(now["value"])
    if verdict in ("same", "better", UNDECIDED) and values[0] != values[1]:
        verdict = MOVED if verdict == "same" else verdict
        if _alike(key, base, new):
            verdict = "changed" if rule.exact else verdict
            why = f"{why}; not identical on the same machine"
    accounts = " and ".join(EXACT[name] for name in moved)
    texts = _text(old), _text(now)
    return Difference(key, verdict, *texts, why, test.p, values, accounts=accounts)


def _alike(key: Key, base: ResultSet, new: ResultSet) -> bool:
    """Whether the same seeds were run on the same machine with the same packages."""
    was, now = records_of(key, base), records_of(key, new)
    seeds = [[record.seed for record in side] for side in (was, now)]
    return bool(was) and seeds[0] == seeds[1] and all(map(same_machine, was, now))


def _of_value(metric: str, old: Line, now: Line, rule: Rule, test: Test) -> tuple[str, list[str]]:
    """The verdict on a value alone, and why."""
    if metric in TEXTS:
        return "same" if old["value"] == now["value"] else "worse", []
    base, new = old["value"], now["value"]
    if not _finite(old, now):
        lost = "worse" if math.isfinite(base) else "better"
        same = format_value(base) == format_value(new)
        return ("same", []) if same else (lost, ["not finite"])
    scale = scale_of(metric, old["unit"])
    worse, loss = "worse" if scale.sign else "changed", loss_of(base, new, scale.sign)
    remarks = [f"{'loss' if scale.sign else 'distance'} {loss:+.{scale.digits}f}"]
    if _identical(old, now):
        return "same", [*remarks, "identical"]
    allowed = scale.allowance(rule.tolerance, base)
    if test.p is None:
        one = "one seed" if None in (old["std"], now["std"]) else "no seed moves it"
        verdict = worse if loss > allowed else "better" if loss < -allowed else "same"
        return verdict, [*remarks, f"{one}, tolerance {allowed:g}"]
    text = f"p = {test.p:.2g}"
    if test.noise:
        text += f", {ANOTHER_MACHINE}, one run ± {test.noise:.{scale.digits}f}"
    if test.significant and loss and abs(loss) >= scale.allowance(rule.effect, base):
        return worse if loss > 0 else "better", [*remarks, f"{text} (Holm)"]
    if loss > max(allowed, explained(old, now, test.noise, test.level)):
        text += ": more than one seed may lose, too much spread to decide; add seeds"
        return UNDECIDED, [*remarks, text]
    return "same", [*remarks, text]


def _shares(old: Line, now: Line) -> list[str]:
    """That the means are over different shares of their values."""
    if not (old.get("of") and now.get("of")) or share_of(old) == share_of(now):
        return []
    counts = (f"{cell['defined']} of {cell['of']}" for cell in (old, now))
    return [f"mean over {' -> '.join(counts)} values"]


def _account(name: str, old: float | None, now: float | None) -> str:
    """`bytes up 10 -> 11 (+10.0 %)`."""
    if not name.startswith("bytes") or old is None or now is None:
        return f"{EXACT[name]} {format_value(old) or 'none'} -> {format_value(now) or 'none'}"
    share = f" ({100 * (now / old - 1):+.1f} %)" if old else ""
    return f"{EXACT[name]} {old:,} -> {now:,}{share}"


def _text(cell: Line) -> str:
    scale = scale_of(cell["metric"], cell["unit"])
    spread = "" if cell["std"] is None else f" ± {scale.text(cell['std'])}"
    return scale.text(cell["value"]) + spread
