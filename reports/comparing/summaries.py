"""The regression report for its readers: Markdown for a pull request, JUnit XML for CI, HTML, and
CSV with every cell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from reports.comparing.rule import (
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
from reports.tables.markup import escaped, markdown_table
from results.names import printable
from results.store import write_csv

ROWS = 30
"""Rows of the Markdown table; a pull request's comment is read at a glance, and GitHub cuts one at
65,536 characters."""
NEW = 5
"""New cells that the Markdown names."""
GROUPS = 5
"""Reasons for leaving something out that the Markdown names."""
CSV_COLUMNS = ("table", "row", "column", "metric", "verdict", "base", "new", "p", "why")
TITLES = {CELL: "cells", COST: "time and memory", SPEED: "speed benchmarks"}
LISTED = (OTHER, UNDECIDED, "better", MOVED, "new")
"""Verdicts that the Markdown lists behind the regressions, in this order."""


def headline(differences: Sequence[Difference]) -> tuple[str, str]:
    """`Regression` or `No regression`, and the number of every verdict by kind, what is wrong
    first.
    """
    parts = []
    for kind, title in TITLES.items():
        of_kind = sorted((d for d in differences if d.kind == kind), key=_is_fine)
        counts = Counter(d.verdict + (f" in {d.accounts}" * _says_accounts(d)) for d in of_kind)
        if counts:
            parts.append(f"{title}: {', '.join(f'{n} {verdict}' for verdict, n in counts.items())}")
    text = "; ".join(parts)
    verdict = "Regression" if any(d.is_regression for d in differences) else "No regression"
    return verdict, text[:1].upper() + text[1:]


def _is_fine(difference: Difference) -> bool:
    return not difference.is_regression


def _says_accounts(difference: Difference) -> bool:
    """Whether the headline names bytes or a budget: of a regression in which they changed."""
    return bool(difference.accounts) and difference.is_regression


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
    parts += ["values equal where seeds, machine and packages are"] if rule.exact else []
    ratios = {"time": rule.time_ratio, "memory": rule.memory_ratio}
    parts += [f"{what} at most x {most:g}" for what, most in ratios.items() if most]
    return "; ".join(parts)


def left_out(differences: Sequence[Difference]) -> dict[tuple[str, str], list[str]]:
    """Tables whose time or memory was not compared, by what and why."""
    tables: dict[tuple[str, str], list[str]] = {}
    for d in differences:
        if d.verdict == NOT_COMPARED:
            tables.setdefault((d.cell[3], d.why), []).append(d.cell[0])
    return tables


def by_table(differences: Sequence[Difference]) -> dict[str, list[Difference]]:
    """The differences of each table."""
    tables: dict[str, list[Difference]] = {}
    for d in differences:
        tables.setdefault(d.cell[0], []).append(d)
    return tables


def markdown(differences: Sequence[Difference], rule: Rule) -> str:
    """A short report, fit for a pull-request comment: counts, the rule, what got worse first, and
    what was not compared.
    """
    verdict, counts = headline(differences)
    lines = [f"**{verdict}**. {counts}.", "", f"Rule: {rule_text(differences, rule)}."]
    new = [d.name for d in differences if d.verdict == "new"]
    shown = [d for d in differences if d.is_regression]
    for listed in LISTED if len(new) <= NEW else LISTED[:-1]:
        shown += [d for d in differences if d.verdict == listed]
    if shown:
        rows = [(d.name, d.verdict, d.base, d.new, d.why) for d in shown[:ROWS]]
        lines += ["", *markdown_table(("cell", "verdict", "base", "new", "why"), rows)]
    if len(shown) > ROWS:
        lines += ["", f"... and {len(shown) - ROWS} more."]
    if len(new) > NEW:
        lines += ["", escaped(f"New: {', '.join(new[:NEW])} and {len(new) - NEW} more cells.")]
    reasons = left_out(differences)
    for (what, why), tables in list(reasons.items())[:GROUPS]:
        named = ", ".join(tables[:3]) + (f" and {len(tables) - 3} more" if len(tables) > 3 else "")
        lines += ["", escaped(f"Not compared: {what} of {named}: {why}.")]
    if len(reasons) > GROUPS:
        lines += ["", f"... and {len(reasons) - GROUPS} more reasons."]
    return "\n".join(lines)


def junit(differences: Sequence[Difference]) -> str:
    """JUnit XML: a test suite per table and a test case per cell, failed for a regression, skipped
    if not compared or undecided; of one whose value moved within spread the output says so.
    """
    suites = ElementTree.Element(
        "testsuites", {"name": "fedtables compare", **_counts(differences)}
    )
    for table, of_table in by_table(differences).items():
        named = {"name": printable(table), **_counts(of_table)}
        suite = ElementTree.SubElement(suites, "testsuite", named)
        for d in of_table:
            _case(suite, d)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=False) + "\n"


def _case(suite: ElementTree.Element, d: Difference) -> None:
    """The test case of one difference."""
    name = printable(" ".join(part for part in d.cell[1:] if part) or "failed cell")
    place = {"classname": printable(d.cell[0]), "name": name, "time": "0"}
    case = ElementTree.SubElement(suite, "testcase", place)
    message = printable(f"{d.verdict}: {d.base or 'none'} -> {d.new or 'none'}; {d.why}")
    if d.is_regression:
        told = {"message": message, "type": d.verdict}
        ElementTree.SubElement(case, "failure", told).text = message
    elif d.verdict in (NOT_COMPARED, UNDECIDED):
        ElementTree.SubElement(case, "skipped", message=message)
    elif d.verdict == MOVED:
        ElementTree.SubElement(case, "system-out").text = message


def _counts(differences: Sequence[Difference]) -> dict[str, str]:
    failures = sum(d.is_regression for d in differences)
    skipped = sum(d.verdict in (NOT_COMPARED, UNDECIDED) for d in differences)
    counts = {"tests": len(differences), "failures": failures, "errors": 0, "skipped": skipped}
    return {name: str(count) for name, count in counts.items()}


def html(differences: Sequence[Difference], rule: Rule, base: str, new: str) -> str:
    """One page without links to anything: regressions first, then every table. `base` and `new` are
    their names.
    """
    from reports.tables.html import render  # most comparisons need no page, and no Jinja

    verdict, counts = headline(differences)
    page = render(
        "compare.html.jinja",
        verdict=verdict,
        counts=counts,
        rule=rule_text(differences, rule),
        base=base,
        new=new,
        tables=by_table(differences),
        regressions=[d for d in differences if d.is_regression],
        moved=[d for d in differences if d.verdict == MOVED],
        left_out=left_out(differences),
    )
    return page + "\n"


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
