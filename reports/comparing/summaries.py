"""The regression report for its readers: Markdown for a pull request, JUnit XML for CI, HTML, and
CSV with every cell.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
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
from results.spreadsheet import quoted

ROWS = 30
"""Rows of the Markdown table; a pull request's comment is read at a glance, and GitHub cuts one at
65,536 characters."""
NEW = 5
"""New cells that the Markdown names."""
GROUPS = 5
"""Reasons for leaving something out that the Markdown names."""
CSV_COLUMNS = ("table", "row", "column", "metric", "verdict", "base", "new", "p", "why")
TITLES = {CELL: "cells", COST: "time and memory", SPEED: "speed benchmarks"}


def headline(differences: Sequence[Difference]) -> tuple[str, str]:
    """`Regression` or `No regression`, and the number of every verdict by kind, what is wrong
    first.
    """
    parts = []
    for kind, title in TITLES.items():
        of_kind = [d for d in differences if d.kind == kind]
        bad = Counter(_counted(d) for d in of_kind if d.is_regression)
        counts = ", ".join(
            f"{n} {v}"
            for v, n in (bad | Counter(d.verdict for d in of_kind if not d.is_regression)).items()
        )
        if counts:
            parts.append(f"{title}: {counts}")
    text = "; ".join(parts)
    return "Regression" if any(d.is_regression for d in differences) else "No regression", text[
        :1
    ].upper() + text[1:]


def _counted(difference: Difference) -> str:
    """A regression as the headline counts it: a change of bytes or of a budget says so."""
    if not difference.accounts:
        return difference.verdict
    return f"{difference.verdict} in {difference.accounts}"


def rule_text(differences: Sequence[Difference], rule: Rule) -> str:
    """The rule in one line, with the number of tests it was applied to."""
    tested = sum(d.p is not None for d in differences)
    of_tests = (
        f"Holm over {tested} test{'' if tested == 1 else 's'}" if tested else "no cell to test"
    )
    seeds = (
        f"Welch's test, one-sided, α = {rule.alpha:g}, {of_tests}, loss of at least {rule.effect:g}"
    )
    parts = [
        f"several seeds: {seeds}",
        f"one seed: loss above {rule.tolerance:g} (of a fraction, scaled to the metric)",
    ]
    if any(ANOTHER_MACHINE in d.why for d in differences):
        parts.append(f"{ANOTHER_MACHINE}: at least the spread of test set and rounding")
    parts.append("bytes and ε equal")
    parts += ["values equal where seeds, machine and packages are"] if rule.exact else []
    parts += [
        f"{what} at most x {most:g}"
        for what, most in (("time", rule.time_ratio), ("memory", rule.memory_ratio))
        if most
    ]
    return "; ".join(parts)


def left_out(differences: Sequence[Difference]) -> dict[tuple[str, str], list[str]]:
    """Tables whose time or memory was not compared, by what and why."""
    tables: dict[tuple[str, str], list[str]] = {}
    for d in differences:
        if d.verdict == NOT_COMPARED:
            tables.setdefault((d.cell[3], d.why), []).append(d.cell[0])
    return tables


def markdown(differences: Sequence[Difference], rule: Rule) -> str:
    """A short report, fit for a pull-request comment: counts, the rule, what got worse first, and
    what was not compared.
    """
    verdict, counts = headline(differences)
    lines = [f"**{verdict}**. {counts}.", "", f"Rule: {rule_text(differences, rule)}."]
    undecided = [d for d in differences if d.verdict == UNDECIDED]
    settings = [d for d in differences if d.verdict == OTHER]
    shown = (
        [d for d in differences if d.is_regression]
        + settings
        + undecided
        + [d for d in differences if d.verdict == "better"]
        + [d for d in differences if d.verdict == MOVED]
    )
    new = [d for d in differences if d.verdict == "new"]
    shown += new if len(new) <= NEW else []
    if shown:
        rows = [(d.name, d.verdict, d.base, d.new, d.why) for d in shown[:ROWS]]
        headings = ("cell", "verdict", "base", "new", "why")
        lines += ["", *markdown_table(headings, rows)]
    if len(shown) > ROWS:
        lines += ["", f"... and {len(shown) - ROWS} more."]
    if len(new) > NEW:
        lines += [
            "",
            escaped(
                f"New: {', '.join(d.name for d in new[:NEW])} and {len(new) - NEW} more cells."
            ),
        ]
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
    for table in dict.fromkeys(d.cell[0] for d in differences):
        of_table = [d for d in differences if d.cell[0] == table]
        suite = ElementTree.SubElement(
            suites, "testsuite", {"name": printable(table), **_counts(of_table)}
        )
        for d in of_table:
            name = " ".join(part for part in d.cell[1:] if part) or "failed cell"
            case = ElementTree.SubElement(
                suite, "testcase", classname=printable(table), name=printable(name), time="0"
            )
            message = printable(f"{d.verdict}: {d.base or 'none'} -> {d.new or 'none'}; {d.why}")
            if d.is_regression:
                ElementTree.SubElement(
                    case, "failure", message=message, type=d.verdict
                ).text = message
            elif d.verdict in (NOT_COMPARED, UNDECIDED):
                ElementTree.SubElement(case, "skipped", message=message)
            elif d.verdict == MOVED:
                ElementTree.SubElement(case, "system-out").text = message
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=False) + "\n"


def _counts(differences: Sequence[Difference]) -> dict[str, str]:
    failures = sum(d.is_regression for d in differences)
    skipped = sum(d.verdict in (NOT_COMPARED, UNDECIDED) for d in differences)
    return {
        "tests": str(len(differences)),
        "failures": str(failures),
        "errors": "0",
        "skipped": str(skipped),
    }


def html(differences: Sequence[Difference], rule: Rule, base: str, new: str) -> str:
    """One page without links to anything: regressions first, then every table. `base` and `new` are
    their names.
    """
    from reports.tables.html import (
        render,
    )  # Jinja takes its time to import, and most comparisons need no page

    verdict, counts = headline(differences)
    tables = {
        table: [d for d in differences if d.cell[0] == table]
        for table in dict.fromkeys(d.cell[0] for d in differences)
    }
    page = render(
        "compare.html.jinja",
        verdict=verdict,
        counts=counts,
        rule=rule_text(differences, rule),
        base=base,
        new=new,
        tables=tables,
        regressions=[d for d in differences if d.is_regression],
        moved=[d for d in differences if d.verdict == MOVED],
        left_out=left_out(differences),
    )
    return page + "\n"


def csv_text(differences: Sequence[Difference]) -> str:
    """Every cell with its verdict; values with all digits, p before the correction."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for d in differences:
        texts = [*d.cell, d.verdict, *d.values, "" if d.p is None else repr(d.p), d.why]
        writer.writerow([quoted(printable(text)) for text in texts])
    return buffer.getvalue()
