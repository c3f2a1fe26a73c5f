"""What the rows of a table took: samples that networks learnt from, on clients and at the server,
and bytes; and which rows took more or less than their family.

A family is a method and those whose classes derive from it. Its rows train alike unless somebody
says otherwise, so a row that does not is marked: it wins or loses by its budget too.
"""

import math
from collections.abc import Sequence

import pandas as pd
from rich.table import Table as RichTable
from rich.text import Text

from fedtables.reports.tables.markup import markdown_table
from fedtables.reports.tables.table import Layout, marked_title
from fedtables.results.record import BUDGET, OK, Record

TOLERANCE = 0.01
"""Share of its family's budget by which a row's may differ."""
LOCAL, SERVER, SENT = "samples seen by clients", "samples seen by the server", "bytes"
TOTAL = "samples seen by clients and server"
WITHIN = 0.02
"""Share of its family's samples by which a row's may differ in such a table."""
HEADINGS = ("samples seen by clients", "by the server", "MB up and down")
UNKNOWN = "unknown"
"""Samples of a record from before they were counted."""


def runs_of(layout: Layout, records: Sequence[Record]) -> pd.DataFrame:
    """What runs of rows of the layout took, by row, column and seed: samples that networks on
    clients and at the server learnt from, each time counted, and bytes both ways. What is unknown
    is not a number; of runs that failed there is none.
    """
    runs = {
        (r.row, r.column, r.seed): (r.local_samples, r.server_samples, r.bytes_up + r.bytes_down)
        for row in layout.rows
        for r in records
        if r.row == row and r.status == OK
    }
    index = pd.MultiIndex.from_tuples([*runs], names=("row", "column", "seed"))
    return pd.DataFrame([*runs.values()], index, [LOCAL, SERVER, SENT], dtype=float)


def budget_rows(layout: Layout, records: Sequence[Record]) -> list[tuple[str, ...]]:
    """Title and budget of each row, under `HEADINGS`, a range where its runs differ; none for a
    table for which nothing was trained or sent.
    """
    runs = runs_of(layout, records)
    if not runs.fillna(0).to_numpy().any():
        return []
    return [
        (
            marked_title(layout, str(row)),
            range_text(of_row[LOCAL].tolist()),
            range_text(of_row[SERVER].tolist()),
            range_text(of_row[SENT].tolist(), 1e6, 3),
        )
        for row, of_row in runs.groupby(level="row", sort=False)
    ]


def range_text(counts: Sequence[float], unit: float = 1, digits: int = 0) -> str:
    """`12`, `12 to 15`, or that one of the counts is not a number."""
    if any(map(math.isnan, counts)):
        return UNKNOWN
    ends = (f"{number / unit:,.{digits}f}" for number in (min(counts), max(counts)))
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
        runs, tolerance = (runs[LOCAL] + runs[SERVER]).to_frame(TOTAL), WITHIN
    by_row = {str(row): of.droplevel("row") for row, of in runs.groupby(level="row", sort=False)}
    lineages = {r.row: r.lineage for r in records if r.row in by_row and r.lineage}
    unequal = {}
    for row, lineage in lineages.items():
        roots = [other for other in by_row if lineages.get(other, ("",))[0] == lineage[-1]]
        root = layout.own if layout.own in roots else next(iter(roots), row)
        if differences := _differences(by_row[row], by_row[root], tolerance):
            unequal[row] = f"another budget than {layout.rows[root]}: {', '.join(differences)}"
    return unequal


def _differences(runs: pd.DataFrame, root: pd.DataFrame, tolerance: float) -> list[str]:
    """`bytes +12.5 %`, for each entry of a budget that differs by more than the tolerance."""
    texts = []
    for name in runs:
        known = pd.concat([runs[name], root[name]], axis="columns", join="inner").dropna()
        own, others = known.to_numpy().T
        new = own[others == 0].max(initial=0)
        shares = own[others > 0] / others[others > 0] - 1
        share = max(shares, key=abs, default=0.0)
        if new:
            texts.append(f"{name} {new:,.0f} instead of none")
        elif abs(share) > tolerance:
            texts.append(f"{name} {100 * share:+,.1f} %")
    return texts
