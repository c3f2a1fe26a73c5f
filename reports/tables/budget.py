"""What the rows of a table took: samples that networks learnt from, on clients and at the server,
and bytes; and which rows took more or less than their family.

A family is a method and those whose classes derive from it. Its rows train alike unless somebody
says otherwise, so a row that does not is marked: it wins or loses by its budget too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table as RichTable
from rich.text import Text

from reports.tables.markup import markdown_table
from reports.tables.table import Layout, marked_title
from results.record import BUDGET, OK, Record

TOLERANCE = 0.01
"""Share of its family's budget by which a row's may differ."""
LOCAL, SERVER, SENT = "samples seen by clients", "samples seen by the server", "bytes"
TOTAL = "samples seen by clients and server"
WITHIN = 0.02
"""Share of its family's samples by which a row's may differ in such a table."""
HEADINGS = ("samples seen by clients", "by the server", "MB up and down")
UNKNOWN = "unknown"
"""Samples of a record from before they were counted."""

Budget = Mapping[str, int | None]
"""What a run took: samples that networks on clients and at the server learnt from, each time
counted, None if unknown; bytes both ways."""
Runs = Mapping[tuple[str, int], Budget]
"""A row's runs, by column and seed."""


def runs_of(layout: Layout, records: Sequence[Record]) -> dict[str, Runs]:
    """The budgets of the runs of each row of the layout; of those that failed there is none."""
    runs: dict[str, dict[tuple[str, int], Budget]] = {row: {} for row in layout.rows}
    for r in records:
        if r.status == OK and r.row in runs:
            sent = r.bytes_up + r.bytes_down
            budget = {LOCAL: r.local_samples, SERVER: r.server_samples, SENT: sent}
            runs[r.row][r.column, r.seed] = budget
    return {row: of_row for row, of_row in runs.items() if of_row}


def budget_rows(layout: Layout, records: Sequence[Record]) -> list[tuple[str, ...]]:
    """Title and budget of each row, under `HEADINGS`, a range where its runs differ; none for a
    table for which nothing was trained or sent.
    """
    by_row = runs_of(layout, records)
    if not any(count for runs in by_row.values() for b in runs.values() for count in b.values()):
        return []
    return [
        (
            marked_title(layout, row),
            range_text([budget[LOCAL] for budget in runs.values()]),
            range_text([budget[SERVER] for budget in runs.values()]),
            range_text([budget[SENT] for budget in runs.values()], 1e6, 3),
        )
        for row, runs in by_row.items()
    ]


def range_text(counts: Sequence[float | None], unit: float = 1, digits: int = 0) -> str:
    """`12`, `12 to 15`, or that one of the counts is not known."""
    known = [count / unit for count in counts if count is not None]
    if len(known) < len(counts):
        return UNKNOWN
    ends = (f"{number:,.{digits}f}" for number in (min(known), max(known)))
    return " to ".join(dict.fromkeys(ends))


def markdown_budget(rows: Sequence[Sequence[str]]) -> list[str]:
    """`budget_rows` as lines of Markdown; none of no rows."""
    return markdown_table(("", *HEADINGS), rows) if rows else []


def terminal_budget(rows: Sequence[Sequence[str]]) -> RichTable:
    """`budget_rows` for a terminal."""
    table = RichTable(title="Budget of a run", title_justify="left", title_style="bold")
    for heading in ("", *HEADINGS):
        table.add_column(heading, justify="right" if heading else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def unequal_rows(layout: Layout, records: Sequence[Record]) -> dict[str, str]:
    """The rows whose budget is not that of their family's root in the same columns and seeds, each
    with by how much; of several columns by how much at most. Of a table that has one budget for
    all rows, the samples of clients and server together are compared, and nothing else.

    The root's row is the paper's own if that is of the method, else the first that is. A row whose
    family has no other, and those of older records, are compared with none.
    """
    runs, tolerance = runs_of(layout, records), TOLERANCE
    if any(BUDGET in r.config for r in records):
        runs, tolerance = {row: _totals(of_row) for row, of_row in runs.items()}, WITHIN
    lineages = {r.row: r.lineage for r in records if r.row in runs and r.lineage}
    unequal = {}
    for row, lineage in lineages.items():
        roots = [other for other in runs if lineages.get(other, ("",))[0] == lineage[-1]]
        root = layout.own if layout.own in roots else next(iter(roots), row)
        if differences := _differences(runs[row], runs[root], tolerance):
            unequal[row] = f"not the budget of {layout.rows[root]}: {', '.join(differences)}"
    return unequal


def _totals(runs: Runs) -> Runs:
    """The samples of each run, of clients and server together; None where either is unknown."""

    def total(budget: Budget) -> int | None:
        local, server = budget[LOCAL], budget[SERVER]
        return None if local is None or server is None else local + server

    return {place: {TOTAL: total(budget)} for place, budget in runs.items()}


def _differences(runs: Runs, root: Runs, tolerance: float) -> list[str]:
    """`bytes +12.5 %`, for each entry of a budget that differs by more than the tolerance."""
    texts = []
    places = [place for place in runs if place in root]
    for name in dict.fromkeys(name for place in places for name in runs[place]):
        pairs = ((runs[place][name], root[place][name]) for place in places)
        known = [(a, b) for a, b in pairs if a is not None and b is not None]
        new = max((a for a, b in known if not b), default=0)
        share = max((a / b - 1 for a, b in known if b), key=abs, default=0.0)
        if new:
            texts.append(f"{name} {new:,} in place of none")
        elif abs(share) > tolerance:
            texts.append(f"{name} {100 * share:+,.1f} %")
    return texts
