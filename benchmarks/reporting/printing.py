"""Prints a table's numbers, claims and files for the cells that a command names."""

from collections.abc import Mapping, Sequence

import pandas as pd
from rich.console import Console
from rich.markup import escape

from fedtables.benchmarks.reporting.layout import layout_of
from fedtables.benchmarks.reporting.verdicts import judge_claims
from fedtables.benchmarks.running.table_run import TableRun
from fedtables.benchmarks.tables.derived import with_derived
from fedtables.benchmarks.tables.selection import matches, wanted_values
from fedtables.reports.measures.kind import find_kind
from fedtables.reports.pages.sheet import is_measured
from fedtables.reports.tables.budget import budget_rows, terminal_budget
from fedtables.reports.tables.notes import legend
from fedtables.reports.tables.table import ShownTable
from fedtables.reports.tables.terminal import terminal_tables
from fedtables.reports.tables.units import scale_of
from fedtables.results.record import Record


def print_table(console: Console, run: TableRun, table: ShownTable) -> None:
    """Print the numbers that this command was asked for, verdicts, and where the files lie."""
    asked = [record for record in table.records if record.cell in run.records]
    _print_numbers(console, run, table, asked)
    earlier = len(table.records) - len(asked)
    if earlier:
        text = f"the files have {earlier} more cells, from earlier commands into this folder"
        console.print(f"[dim]{text}; the records say when[/]", soft_wrap=True)
    print_claims(console, judge_claims(run, asked) if earlier else table.claims)
    suffixes = ("csv", "md", "records.jsonl", *(["claims.csv"] if table.claims else []), "png")
    wrote = ", ".join(str(run.files.path(suffix)) for suffix in suffixes)
    console.print(f"wrote {escape(wrote)} (and .svg, .pdf)", soft_wrap=True)


def _print_numbers(
    console: Console, run: TableRun, table: ShownTable, asked: Sequence[Record]
) -> None:
    """Print the numbers of the records that were asked for, and what a reader must know of them."""
    kind, told = find_kind(run.table.measure), list(table.told)
    of_asked = lines_of(with_derived(asked, run.table.derived), table.lines)
    layout, shown = layout_of(run, asked), kind.shown(of_asked)
    console.print(
        f"\n[bold]{run.name}: {escape(layout.title)}.[/]"
        f" {escape(layout.caption)}\n{escape('; '.join(layout.labels))}"
    )
    if kind.ranks_first:
        console.print(escape(told.pop(0)), soft_wrap=True)
    brief = kind.brief(shown)
    for part in terminal_tables(layout, brief):
        console.print(part)
    others = shown.loc[~shown["metric"].isin(brief["metric"]), "metric"].unique()
    if len(others):
        titles = ", ".join(scale_of(metric, layout.unit).title for metric in others)
        console.print(f"only in the files: {escape(titles)}", soft_wrap=True)
    if budget := budget_rows(layout, asked):
        console.print(terminal_budget(budget))
    notes = [*told, *legend(layout, brief)]
    wanted = wanted_values(run.table, run.rows, run.selection.only or {})
    asked_for = [
        row.key
        for row in run.rows
        if any(matches(row, column, wanted) for column in run.table.columns)
    ]
    for key in run.selection.add:
        if key not in asked_for:
            notes.append(
                f"--only leaves out row {key}, which --methods adds; name it in --only row=... too"
            )
        elif key not in layout.rows:
            notes.append(
                f"row {key} has no cell here: it needs public labels of the task's classes"
            )
    for note in notes:
        console.print(f"[dim]{escape(note)}[/]", soft_wrap=True)


def print_claims(console: Console, claims: Sequence[Mapping[str, str]]) -> None:
    """Print the verdicts on claims, and how many claims need cells that were not asked for."""
    judged = [claim for claim in claims if is_measured(claim)]
    for claim in judged:
        console.print(
            f"claim: {escape(claim['claim'])}: [bold]{claim['verdict']}[/] (in print:"
            f" {claim['in_print']})",
            soft_wrap=True,
        )
    if any(claim["seeds"] == "1" for claim in judged):
        console.print("[dim]these verdicts rest on one seed; --seeds 0,1,2 adds a spread[/]")
    if absent := len(claims) - len(judged):
        console.print(f"[dim]claims that need cells beyond these: {absent}[/]")


def lines_of(records: Sequence[Record], lines: pd.DataFrame) -> pd.DataFrame:
    """The lines of a table's CSV that are of these records."""
    places = {(record.row, record.column) for record in records}
    return lines[
        [
            any(r == row and f"{column} ".startswith(f"{c} ") for r, c in places)
            for row, column in zip(lines["row"], lines["column"], strict=True)
        ]
    ]
