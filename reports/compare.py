"""Compares two result sets cell by cell: the regression report.

The rule. With at least two seeds on both sides a metric is worse if a one-sided Welch t-test says so at 5 %, Holm's
correction made over all cells compared, and the loss is at least the smallest effect that matters. With one seed on
a side there is no spread to test against: a metric is worse if it lost more than the tolerance. A loss is what the
metric's direction makes one; of a metric without a direction any such difference counts as a change. Tolerance and
effect are given for a fraction and scaled to the metric's unit (`metrics/names.py`): 0.02 of an accuracy is 2 in
percent, 0.2 of an inception score, 1 dB; of a metric of which nothing is known it is 2 % of the value. Bytes and
epsilon must be equal. A cell that vanished or failed is a regression; a new one is named. Sets of different profile,
protocol, data or unit are not compared at all.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reports.units import Scale, scale_of, unit_of
from results.files import ResultsError
from results.store import read_csv

ALPHA = 0.05
MUST_AGREE = ("profile", "protocol", "data", "origin", "unit")
EXACT = ("bytes_up", "bytes_down", "epsilon", "delta")

Cell = Mapping[str, str]
Key = tuple[str, str, str, str]
"""Table, row, column, metric."""


@dataclass(frozen=True)
class Difference:
    """What became of one cell."""

    cell: Key
    verdict: str
    """`same`, `better`, `worse`, `vanished`, `failed`, `new` or `changed` (bytes, epsilon, or a metric without direction)."""
    base: str
    """The value as printed."""
    new: str
    why: str = ""

    @property
    def is_regression(self) -> bool:
        return self.verdict in ("worse", "vanished", "failed", "changed")


def read_set(path: Path) -> dict[Key, Cell]:
    """The cells of a result set: a table's CSV, or a folder of them. Raises ResultsError if there is none.

    `unit` is added to each: how its table prints shares.
    """
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*.csv") if not p.name.endswith(".claims.csv"))
    cells: dict[Key, Cell] = {}
    for file in files:
        table = file.stem if path.is_file() else str(file.relative_to(path).with_suffix(""))
        lines = read_csv(file)
        numbers: dict[str, list[float]] = defaultdict(list)
        for position, line in enumerate(lines, 2):
            if line["status"] == "ok" and line["metric"] != "classes":
                if not _is_number(line["value"]):
                    raise ResultsError(f"{file} line {position}: value {line['value']!r} is not a number; regenerate the table")
                numbers[line["metric"]].append(float(line["value"]))
        # The folder is the paper, and what follows a dot (`table1.released`) the protocol.
        paper, printed = file.resolve().parent.name, file.stem.split(".")[0]
        units = {metric: unit_of(paper, printed, metric, values) for metric, values in numbers.items()}
        for line in lines:
            cells[table, line["row"], line["column"], line["metric"]] = {**line, "unit": units.get(line["metric"], "")}
    if not cells:
        raise ResultsError(f"{path} holds no table of this suite; give a CSV or a folder written by `reproduce`")
    return cells


def _welch(base: Cell, new: Cell, sign: int) -> float:
    """One-sided p-value that `new` is worse than `base`; two-sided for a metric without direction."""
    from scipy.stats import ttest_ind_from_stats

    (m1, s1, n1), (m2, s2, n2) = ((float(c["value"]), float(c["std"]), int(c["n"])) for c in (base, new))
    if s1 == s2 == 0:
        return 0.0 if _loss(m1, m2, sign) > 0 else 1.0
    alternative = {1: "less", -1: "greater", 0: "two-sided"}[sign]
    return float(ttest_ind_from_stats(m2, s2, n2, m1, s1, n1, equal_var=False, alternative=alternative).pvalue)


def _loss(base: float, new: float, sign: int) -> float:
    """By how much `new` is worse; the distance for a metric without direction."""
    return sign * (base - new) if sign else abs(base - new)


def _worse(scale: Scale) -> str:
    return "worse" if scale.sign else "changed"


def _text(cell: Cell) -> str:
    return scale_of(cell["metric"], cell["unit"]).text(cell["value"])


def compare(base: Mapping[Key, Cell], new: Mapping[Key, Cell], tolerance: float, effect: float) -> list[Difference]:
    """Every cell's difference. Raises ResultsError if the sets differ in profile, protocol, data or unit."""
    for key in base.keys() & new.keys():
        for name in MUST_AGREE:
            if base[key].get(name) != new[key].get(name):
                raise ResultsError(
                    f"{' '.join(key)}: {name} is {base[key].get(name)!r} and {new[key].get(name)!r}; these are not comparable"
                )
    tested: list[tuple[float, Key]] = []
    found: dict[Key, Difference] = {}
    for key, old in base.items():
        now = new.get(key)
        if old["status"] != "ok":
            still = now is not None and now["status"] != "ok"
            found[key] = Difference(
                key, "same" if still else "better", "", "", "failed in the base set" + (" too" if still else "")
            )
            continue
        if now is None:
            # A failed cell has no metric, so its line has another key: say failed rather than vanished.
            failed = next((c for k, c in new.items() if k[:3] == key[:3] and c["status"] != "ok"), None)
            verdict = "failed" if failed else "vanished"
            found[key] = Difference(key, verdict, _text(old), "", failed["status"] if failed else "no such cell in the new set")
            continue
        unequal = [name for name in EXACT if old.get(name) != now.get(name)]
        if unequal:
            why = "; ".join(f"{name} {old.get(name) or 'none'} -> {now.get(name) or 'none'}" for name in unequal)
            found[key] = Difference(key, "changed", _text(old), _text(now), why)
        elif _is_number(old["value"]) and _is_number(now["value"]):
            scale = scale_of(key[3], old["unit"])
            loss = _loss(float(old["value"]), float(now["value"]), scale.sign)
            why = f"{'loss' if scale.sign else 'distance'} {loss:+.{scale.digits}f}"
            if old["std"] and now["std"]:
                tested.append((_welch(old, now, scale.sign), key))
                found[key] = Difference(key, "same", _text(old), _text(now), why)
            else:
                allowed = scale.allowance(tolerance, float(old["value"]))
                verdict = _worse(scale) if loss > allowed else "better" if loss < -allowed else "same"
                found[key] = Difference(key, verdict, _text(old), _text(now), f"{why}, one seed, tolerance {allowed:g}")
        else:
            verdict = "same" if old["value"] == now["value"] else "worse"
            found[key] = Difference(key, verdict, _text(old), _text(now))
    for rank, (p, key) in enumerate(sorted(tested)):
        if p > ALPHA / (len(tested) - rank):
            break  # Holm: the first that is not significant ends it
        value, new_value = float(base[key]["value"]), float(new[key]["value"])
        scale = scale_of(key[3], base[key]["unit"])
        loss = _loss(value, new_value, scale.sign)
        if loss > 0 and loss >= scale.allowance(effect, value):
            found[key] = replace(found[key], verdict=_worse(scale), why=f"{found[key].why}, p = {p:.2g} (Welch, Holm)")
    for key, now in new.items():
        if key not in base and now["status"] == "ok":
            found[key] = Difference(key, "new", "", _text(now))
    return list(found.values())


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def markdown_summary(differences: Sequence[Difference]) -> str:
    """A short report, fit for a pull-request comment: what got worse first, then counts."""
    regressions = [d for d in differences if d.is_regression]
    counts = {verdict: sum(d.verdict == verdict for d in differences) for verdict in dict.fromkeys(d.verdict for d in differences)}
    lines = [
        f"**{'Regression' if regressions else 'No regression'}**: " + ", ".join(f"{n} {v}" for v, n in counts.items()) + ".",
        "",
    ]
    shown = regressions + [d for d in differences if d.verdict in ("better", "new")]
    if shown:
        lines += ["| cell | verdict | base | new | why |", "|---|---|---|---|---|"]
        lines += [f"| {' '.join(d.cell)} | {d.verdict} | {d.base} | {d.new} | {d.why} |" for d in shown]
    return "\n".join(lines)
