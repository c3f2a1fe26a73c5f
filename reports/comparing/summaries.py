"""The regression report for its readers, each by a template: Markdown for a pull request, JUnit XML
for CI, and HTML; and as CSV every cell.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from fedtables.reports.comparing.rule import (
    ANOTHER_MACHINE,
    CELL,
    COST,
    MOVED,
    NOT_COMPARED,
    OTHER,
    SPEED,
    UNDECIDED,
    Difference,
    Rule,
)
from fedtables.reports.tables.markup import render
from fedtables.results.names import printable
from fedtables.results.store import write_csv

NEW = 5
"""New cells that the Markdown lists; more are named in a line."""
CSV_COLUMNS = ("table", "row", "column", "metric", "verdict", "base", "new", "p", "why")
TITLES = {CELL: "cells", COST: "time and memory", SPEED: "speed benchmarks"}
LISTED = (OTHER, UNDECIDED, "better", MOVED, "new")
"""Verdicts that the Markdown lists behind the regressions, in this order."""


def report(
    kind: str, differences: Sequence[Difference], rule: Rule, base: str = "", new: str = ""
) -> str:
    """The report of a `kind`: `md`, `xml` or `html`. `base` and `new` are the sets' names.

    The Markdown is short, fit for a pull-request comment. The XML has a test suite per table and a
    test case per cell, failed for a regression, skipped if not compared or undecided. The page
    links to nothing, and has regressions first, then every table.
    """
    regressions = [d for d in differences if d.is_regression]
    gained = [d for d in differences if d.verdict == "new"]
    listed = LISTED if len(gained) <= NEW else LISTED[:-1]
    left_out: dict[tuple[str, str], list[str]] = {}
    for d in differences:
        if d.verdict == NOT_COMPARED:
            left_out.setdefault((d.cell[3], d.why), []).append(d.table)
    return render(
        f"compare.{kind}.jinja",
        verdict="Regression" if regressions else "No regression",
        counts=counted(differences),
        rule=rule_text(differences, rule),
        base=base,
        new=new,
        differences=differences,
        regressions=regressions,
        listed=[d for verdict in listed for d in differences if d.verdict == verdict],
        moved=[d for d in differences if d.verdict == MOVED],
        gained=gained if len(gained) > NEW else [],
        left_out=left_out,
        skipped=(NOT_COMPARED, UNDECIDED),
    )


def counted(differences: Sequence[Difference]) -> str:
    """The number of every verdict by kind, what is wrong first; of a regression in which bytes or a
    budget changed with these.
    """
    parts = []
    for kind, title in TITLES.items():
        of_kind = [d for d in differences if d.kind == kind]
        of_kind.sort(key=lambda d: not d.is_regression)
        counts = Counter(
            d.verdict + (f" in {d.accounts}" if d.accounts and d.is_regression else "")
            for d in of_kind
        )
        if counts:
            parts.append(f"{title}: {', '.join(f'{n} {verdict}' for verdict, n in counts.items())}")
    text = "; ".join(parts)
    return text[:1].upper() + text[1:]


def rule_text(differences: Sequence[Difference], rule: Rule) -> str:
    """The rule in one line, with the number of tests it was applied to."""
    tested = sum(d.p is not None for d in differences)
    of_tests = f"Holm over {tested} test{'s' * (tested != 1)}" if tested else "no cell to test"
    parts = [
        f"several seeds: Welch's test, one-sided, α = {rule.alpha:g}, {of_tests}, loss of at least"
        f" {rule.effect:g}",
        f"one seed: loss above {rule.tolerance:g} (of a fraction, scaled to the metric)",
    ]
    if any(ANOTHER_MACHINE in d.why for d in differences):
        parts.append(f"{ANOTHER_MACHINE}: at least the spread of test set and rounding")
    parts.append("bytes and ε equal")
    parts += ["values equal where seeds, machine and packages agree"] if rule.exact else []
    ratios = {"time": rule.time_ratio, "memory": rule.memory_ratio}
    parts += [f"{what} at most x {most:g}" for what, most in ratios.items() if most]
    return "; ".join(parts)


def write_differences(path: Path, differences: Sequence[Difference]) -> None:
    """Write a CSV with every cell and its verdict; values with all digits, p before the
    correction.
    """
    lines = [
        [*d.cell, d.verdict, *d.values, "" if d.p is None else repr(d.p), d.why]
        for d in differences
    ]
    named = [dict(zip(CSV_COLUMNS, map(printable, line), strict=True)) for line in lines]
    write_csv(path, named, CSV_COLUMNS)
