"""Compares two result sets cell by cell, by the rule that docs/regression.md has in full.

With at least two seeds on both sides a metric is judged by Welch's test, with Holm's correction
over all cells tested; with one measurement on a side by a tolerance; between two machines with the
spread that every run has there (`noise.py`). Bytes and epsilon must be equal. A value that moved by
no more than the rule explains is counted apart from those that are the same to the last digit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from metrics.names import TEXTS
from reports.comparing.comparable import check_comparable, covers
from reports.comparing.costs import costs_of, settings_of
from reports.comparing.noise import records_of, run_noise, same_machine
from reports.comparing.rule import ANOTHER_MACHINE, MOVED, UNDECIDED, Difference, Rule
from reports.comparing.significance import explained, holm, loss_of, measurements, p_value
from reports.tables.resultset import Key, ResultSet
from reports.tables.table import share_of
from reports.tables.units import Scale, scale_of
from results.record import OK
from results.store import Line

EXACT = {"bytes_up": "bytes up", "bytes_down": "bytes down", "epsilon": "ε", "delta": "δ"}
"""What must be equal, with its name in a report."""


def compare_results(base: ResultSet, new: ResultSet, rule: Rule) -> list[Difference]:
    """Every cell's difference, and every table's time and memory.

    Raises ResultsError if the sets have no cell in common, or differ in profile, protocol, data,
    data digest or unit.
    """
    check_comparable(base, new)
    differences: dict[Key, Difference] = {}
    noises: dict[Key, float] = {}
    broken = {key: line["status"] for key, line in new.cells.items() if line["status"] != OK}
    for key, old in base.cells.items():
        now = new.cells.get(key)
        if old["status"] != OK:
            differences[key] = _once_failed(key, now, new)
        elif now is None:
            differences[key] = _lost(key, old, broken)
        else:
            noises[key] = run_noise(key, base, new)
            differences[key] = _judge(key, old, now, rule, noises[key])
    _test(differences, base, new, rule, noises)
    for key, difference in differences.items():
        differences[key] = _told_if_moved(difference, base, new, rule.exact)
    for key, now in new.cells.items():
        known = key in broken and any(covers(key, other) for other in base.cells)
        if key not in base.cells and not known:
            verdict, why = ("new", "") if now["status"] == OK else ("failed", now["status"])
            values = ("", now["value"])
            differences[key] = Difference(key, verdict, "", _text(now), why, values=values)
    both = [(t, base.records[t], new.records[t]) for t in base.records if t in new.records]
    settings = [found for table in both for found in settings_of(*table)]
    costs = [found for table in both for found in costs_of(*table, rule)]
    return [*differences.values(), *settings, *costs]


def _lost(key: Key, old: Line, broken: Mapping[Key, str]) -> Difference:
    """A cell that the new set lacks. One that failed has one line, without metric, for all of its
    measurements.
    """
    status = next((status for failed, status in broken.items() if covers(failed, key)), "")
    verdict, why = ("failed", status) if status else ("vanished", "no such cell in the new set")
    return Difference(key, verdict, _text(old), "", why, values=(old["value"], ""))


def _once_failed(key: Key, now: Line | None, new: ResultSet) -> Difference:
    if now is not None:
        return Difference(key, "same", "", "", "failed in the base set too")
    if any(covers(key, other) for other in new.cells):
        return Difference(key, "better", "", "", "failed in the base set")
    return Difference(
        key, "vanished", "", "", "failed in the base set, no such cell in the new set"
    )


def _judge(key: Key, old: Line, now: Line, rule: Rule, noise: float) -> Difference:
    """The difference of a cell that both sets have, before the correction for the number of
    tests.
    """
    moved = [name for name in EXACT if old[name] != now[name]]
    remarks = [_account(name, old[name], now[name]) for name in moved]
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
        loss = loss_of(float(values[0]), float(values[1]), scale.sign)
        remarks.append(f"{'loss' if scale.sign else 'distance'} {loss:+.{scale.digits}f}")
        if all(old[name] == now[name] for name in ("value", "std", "n")):
            remarks.append(
                "identical"
            )  # it cannot be a false alarm, and takes no part in the correction
        elif noise or min(measurements(old, now)) > 1:
            p = p_value(old, now, scale.sign, noise)
            remarks.append(f"p = {p:.2g}")
            if noise:
                remarks.append(f"{ANOTHER_MACHINE}, one run ± {noise:.{scale.digits}f}")
        else:
            allowed = scale.allowance(rule.tolerance, float(values[0]))
            one = "no seed moves it" if old["std"] and now["std"] else "one seed"
            remarks.append(f"{one}, tolerance {allowed:g}")
            if verdict == "same":
                verdict = (
                    _worse(scale) if loss > allowed else "better" if loss < -allowed else "same"
                )
    if old.get("of") and now.get("of") and share_of(old) != share_of(now):
        counts = (f"{cell['defined']} of {cell['of']}" for cell in (old, now))
        remarks.append(f"mean over {' -> '.join(counts)} values")
        verdict = verdict if verdict == "worse" else "changed"
    for name in ("seeds", "statistic"):
        if old.get(name) and now.get(name) and old[name] != now[name]:
            remarks.append(f"{name} {old[name]} -> {now[name]}")
    accounts = " and ".join(EXACT[name] for name in moved)
    why = ", ".join(remarks)
    return Difference(key, verdict, _text(old), _text(now), why, p, values, accounts=accounts)


def _account(name: str, old: str, now: str) -> str:
    """`bytes up 10 -> 11 (+10.0 %)`."""
    if not name.startswith("bytes") or not old or not now:
        return f"{EXACT[name]} {old or 'none'} -> {now or 'none'}"
    share = f" ({100 * (int(now) / int(old) - 1):+.1f} %)" if int(old) else ""
    return f"{EXACT[name]} {int(old):,} -> {int(now):,}{share}"


def _test(
    differences: dict[Key, Difference],
    base: ResultSet,
    new: ResultSet,
    rule: Rule,
    noises: Mapping[Key, float],
) -> None:
    """Put the verdicts of the tests into `differences`: one family for what is worse, another for
    what is better.
    """
    tested = {key: d.p for key, d in differences.items() if d.p is not None}
    signs = {key: scale_of(key[3], base.cells[key]["unit"]).sign for key in tested}
    worse = holm(tested, rule.alpha)
    better = holm({key: 1 - p for key, p in tested.items() if signs[key]}, rule.alpha)
    for key in tested:
        if differences[key].verdict != "same":
            continue
        old, now, why = base.cells[key], new.cells[key], differences[key].why
        scale = scale_of(key[3], old["unit"])
        value = float(old["value"])
        loss = loss_of(value, float(now["value"]), scale.sign)
        if key in worse | better and loss and abs(loss) >= scale.allowance(rule.effect, value):
            verdict = _worse(scale) if loss > 0 else "better"
            differences[key] = replace(differences[key], verdict=verdict, why=f"{why} (Holm)")
        elif loss > max(
            scale.allowance(rule.tolerance, value),
            explained(old, now, noises[key], rule.alpha / len(tested)),
        ):
            why += ": more than one seed may lose, too much spread to decide; add seeds"
            differences[key] = replace(differences[key], verdict=UNDECIDED, why=why)


def _told_if_moved(
    difference: Difference, base: ResultSet, new: ResultSet, exact: bool
) -> Difference:
    """A cell whose value moved is not the `same`, though the rule explains it. Where its records
    were made with the same seeds, machine and packages it says so, and if `exact` it is `changed`,
    better or not.
    """
    movable = difference.verdict in ("same", "better", UNDECIDED)
    if not movable or difference.values[0] == difference.values[1]:
        return difference
    was, now = records_of(difference.cell, base), records_of(difference.cell, new)
    alike = [r.seed for r in was] == [r.seed for r in now] and all(map(same_machine, was, now))
    verdict, why = difference.verdict, difference.why
    if was and alike:
        verdict = "changed" if exact else verdict
        why = f"{why}; not identical on the same machine"
    return replace(difference, verdict=MOVED if verdict == "same" else verdict, why=why)


def _worse(scale: Scale) -> str:
    return "worse" if scale.sign else "changed"


def _text(cell: Line) -> str:
    scale = scale_of(cell["metric"], cell["unit"])
    return scale.text(cell["value"]) + (f" ± {scale.text(cell['std'])}" if cell["std"] else "")
