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
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from metrics.names import TEXTS
from reports.comparing.comparable import check_comparable
from reports.comparing.costs import RUN_ALIKE, costs_of, settings_of
from reports.comparing.rule import UNDECIDED, Difference, Rule
from reports.tables.resultset import Cell, Key, ResultSet
from reports.tables.units import Scale, scale_of
from results.record import Record

EXACT = ("bytes_up", "bytes_down", "epsilon", "delta")

T = TypeVar("T", bound=Hashable)


def compare(base: ResultSet, new: ResultSet, rule: Rule) -> list[Difference]:
    """Every cell's difference, and every table's time and memory.

    Raises ResultsError if the sets differ in profile, protocol, data, data digest or unit.
    """
    check_comparable(base, new)
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
        settings_of(table, base.records[table], new.records[table])
        for table in base.records
        if table in new.records
    ]
    costs = [
        costs_of(table, base.records[table], new.records[table], rule)
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
