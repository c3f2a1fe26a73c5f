"""Compares two result sets cell by cell: the regression report.

The rule. With at least two seeds on both sides a metric is worse if a one-sided Welch t-test says so at 5 %, Holm's
correction made over all cells compared, and the loss is at least the smallest effect that matters. With one seed on
a side there is no spread to test against: a metric is worse if it lost more than the tolerance. Bytes and epsilon
must be equal. A cell that vanished or failed is a regression; a new one is named. Sets of different profile,
protocol or data are not compared at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.table import number
from results.files import ResultsError
from results.store import read_csv

ALPHA = 0.05
MUST_AGREE = ("profile", "protocol", "data", "origin")
EXACT = ("bytes_up", "bytes_down", "epsilon", "delta")

Cell = Mapping[str, str]
Key = tuple[str, str, str, str]
"""Table, row, column, metric."""


@dataclass(frozen=True)
class Difference:
    """What became of one cell."""

    cell: Key
    verdict: str
    """`same`, `better`, `worse`, `vanished`, `failed`, `new` or `changed` (bytes or epsilon)."""
    base: str
    new: str
    why: str = ""

    @property
    def is_regression(self) -> bool:
        return self.verdict in ("worse", "vanished", "failed", "changed")


def read_set(path: Path) -> dict[Key, Cell]:
    """The cells of a result set: a table's CSV, or a folder of them. Raises ResultsError if there is none."""
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*.csv") if not p.name.endswith(".claims.csv"))
    cells: dict[Key, Cell] = {}
    for file in files:
        table = file.stem if path.is_file() else str(file.relative_to(path).with_suffix(""))
        for position, line in enumerate(read_csv(file), 2):
            if line["status"] == "ok" and not _is_number(line["value"]) and line["metric"] != "classes":
                raise ResultsError(f"{file} line {position}: value {line['value']!r} is not a number; regenerate the table")
            cells[table, line["row"], line["column"], line["metric"]] = line
    if not cells:
        raise ResultsError(f"{path} holds no table of this suite; give a CSV or a folder written by `reproduce`")
    return cells


def _welch(base: Cell, new: Cell) -> float:
    """One-sided p-value that `new` is lower than `base`."""
    from scipy.stats import ttest_ind_from_stats

    (m1, s1, n1), (m2, s2, n2) = ((float(c["value"]), float(c["std"]), int(c["n"])) for c in (base, new))
    if s1 == s2 == 0:
        return 0.0 if m2 < m1 else 1.0
    return float(ttest_ind_from_stats(m2, s2, n2, m1, s1, n1, equal_var=False, alternative="less").pvalue)


def compare(base: Mapping[Key, Cell], new: Mapping[Key, Cell], tolerance: float, effect: float) -> list[Difference]:
    """Every cell's difference. Raises ResultsError if the sets differ in profile, protocol or data."""
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
            found[key] = Difference(key, verdict, old["value"], "", failed["status"] if failed else "no such cell in the new set")
            continue
        unequal = [name for name in EXACT if old.get(name) != now.get(name)]
        if unequal:
            why = "; ".join(f"{name} {old.get(name) or 'none'} -> {now.get(name) or 'none'}" for name in unequal)
            found[key] = Difference(key, "changed", old["value"], now["value"], why)
        elif _is_number(old["value"]) and _is_number(now["value"]):
            loss = float(old["value"]) - float(now["value"])
            if old["std"] and now["std"]:
                tested.append((_welch(old, now), key))
                found[key] = Difference(key, "same", old["value"], now["value"], f"loss {loss:+.4f}")
            else:
                verdict = "worse" if loss > tolerance else "better" if loss < -tolerance else "same"
                found[key] = Difference(
                    key, verdict, old["value"], now["value"], f"loss {loss:+.4f}, one seed, tolerance {tolerance:g}"
                )
        else:
            verdict = "same" if old["value"] == now["value"] else "worse"
            found[key] = Difference(key, verdict, old["value"], now["value"])
    for rank, (p, key) in enumerate(sorted(tested)):
        if p > ALPHA / (len(tested) - rank):
            break  # Holm: the first that is not significant ends it
        loss = float(base[key]["value"]) - float(new[key]["value"])
        if loss >= effect:
            found[key] = Difference(
                key, "worse", base[key]["value"], new[key]["value"], f"loss {loss:+.4f}, p = {p:.2g} (Welch, Holm)"
            )
    for key, now in new.items():
        if key not in base and now["status"] == "ok":
            found[key] = Difference(key, "new", "", now["value"])
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
        lines += [f"| {' '.join(d.cell)} | {d.verdict} | {number(d.base)} | {number(d.new)} | {d.why} |" for d in shown]
    return "\n".join(lines)
