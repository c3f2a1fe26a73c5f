"""What a command shows when it ends: a table's numbers, plot, claims and files."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd
from rich.console import Console
from rich.markup import escape

from benchmarks.publish.command import command_of
from benchmarks.publish.layout import layout_of
from benchmarks.publish.verdicts import judge_claims
from benchmarks.running.runner import TableRun, write_table
from benchmarks.tables import cards, registry
from benchmarks.tables.derived import with_derived
from benchmarks.tables.selection import matches, wanted_values
from reports.kinds.kind import draw_table, find_kind, module_of
from reports.pages.sheet import Sheet, is_measured
from reports.tables.budget import budget_rows, terminal_budget
from reports.tables.notes import legend
from reports.tables.table import Layout, ShownTable
from reports.tables.terminal import terminal_tables
from reports.tables.units import scale_of
from results import published
from results.files import (
    cache_home,
    digest,
    file_digest,
    read_sealed_json,
    write_atomic,
    write_sealed_json,
)
from results.published import format_column
from results.record import Record
from results.sourcecode import source_digest
from results.store import write_sealed_csv


def print_table(console: Console, run: TableRun, plain: bool = False) -> None:
    """Write all files of a table, with what earlier commands have left of it, and print what this
    command was asked for; pictures without title and provenance if `plain`.
    """
    lines, records = write_table(run)
    asked = [record for record in records if record.cell in run.records]
    layout = layout_of(run, records)
    made = made_table(run, layout, lines, records)
    remarks = [
        *find_kind(run.table.measure).remarks(made),
        *(
            f"{format_column(dict(column))} is not measured: {why}"
            for column, why in run.table.unmeasured
        ),
        *(
            f"{row.title}: as an earlier command left it, for its plug-in was not given"
            for row in run.left
        ),
    ]
    card = cards.markdown(run.paper, run.table, run.selection, methods_of(run, records))
    sheet = Sheet(
        layout,
        run.paper.title,
        run.paper.citation,
        run.table.measure,
        tuple(remarks),
        tuple(card),
        command_of(run, records),
        run.table.metrics,
        made.clients,
    )
    claims = judge_claims(run, records)
    _print(console, run, sheet, lines, asked)
    earlier = len(records) - len(asked)
    if earlier:
        text = f"{earlier} cells from earlier commands into this folder are in the files alone"
        console.print(f"[dim]{text}; the records say when[/]", soft_wrap=True)
    print_claims(console, judge_claims(run, asked) if earlier else claims)
    files = [run.files.path("csv"), run.files.path("md"), run.files.path("records.jsonl")]
    sheet.write(run.files.path("layout.json"))
    write_atomic(run.files.path("md"), sheet.markdown(lines, claims, records))
    if claims:
        write_sealed_csv(run.files.path("claims.csv"), claims)
        files.append(run.files.path("claims.csv"))
    draw(run, replace(made, layout=layout.plain()) if plain else made)
    console.print(
        "wrote "
        + escape(", ".join(str(path) for path in [*files, run.files.path("png")]))
        + " (and .svg, .pdf)",
        soft_wrap=True,
    )


def _print(
    console: Console, run: TableRun, sheet: Sheet, lines: pd.DataFrame, asked: Sequence[Record]
) -> None:
    """Print the numbers of the records that were asked for, and what a reader must know of them."""
    of_asked = lines_of(with_derived(asked, run.table.derived), lines)
    layout, shown = layout_of(run, asked), sheet.shown(of_asked)
    console.print(
        f"\n[bold]{run.name}: {escape(layout.title)}.[/]"
        f" {escape(layout.caption)}\n{escape('; '.join(layout.labels))}"
    )
    kind, told = find_kind(run.table.measure), list(sheet.told)
    if kind.ranks_first:
        console.print(escape(told.pop(0)), soft_wrap=True)
    brief = kind.brief(shown)
    for table in terminal_tables(layout, brief):
        console.print(table)
    others = shown.loc[~shown["metric"].isin(brief["metric"]), "metric"].unique()
    if len(others):
        titles = ", ".join(scale_of(metric, layout.unit).title for metric in others)
        console.print(f"in the files alone: {escape(titles)}", soft_wrap=True)
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
                f"row {key} has no cell here: the public set's labels are not of the task's classes"
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
        console.print("[dim]verdicts at one seed carry no spread; --seeds 0,1,2 gives one[/]")
    if absent := len(claims) - len(judged):
        console.print(f"[dim]{absent} claims are about cells that are not among these[/]")


def methods_of(run: TableRun, records: Sequence[Record]) -> set[str]:
    """The methods whose settings the records' cells have."""
    rows = {record.row for record in records}
    measure = registry.find_measure(run.table.measure)
    return {
        *(row.method for row in run.rows if row.key in rows),
        *(name for record in records for name in record.lineage),
        *(name for record in records for name in measure.methods(record.config)),
    }


def lines_of(records: Sequence[Record], lines: pd.DataFrame) -> pd.DataFrame:
    """The lines of a table's CSV that are of these records."""
    places = {(record.row, record.column) for record in records}
    return lines[
        [
            any(r == row and f"{column} ".startswith(f"{c} ") for r, c in places)
            for row, column in zip(lines["row"], lines["column"], strict=True)
        ]
    ]


def made_table(
    run: TableRun, layout: Layout, lines: pd.DataFrame, records: Sequence[Record]
) -> ShownTable:
    """What the table's kind is shown with."""
    clients = tuple(row.key for row in run.rows if row.role)
    return ShownTable(layout, lines, records, run.table.metrics, clients)


def draw(run: TableRun, table: ShownTable) -> None:
    """The table's PNG; a picture that shows all this already is left alone, for drawing takes
    longer than the rest together.

    The note of what a picture shows lies in the cache with the digest of its file, so a damaged
    picture is drawn again.
    """
    path = run.files.path("png")
    note = cache_home() / "pictures" / f"{digest(str(path.resolve()))}.json"
    shows = _shown(run, table)
    with contextlib.suppress(FileNotFoundError):
        if read_sealed_json(note) == {"shows": shows, "file": file_digest(path)}:
            return
    draw_table(find_kind(run.table.measure), table, path)
    if path.exists():  # a table without numbers has no picture
        write_sealed_json(note, {"shows": shows, "file": file_digest(path)})


def _shown(run: TableRun, table: ShownTable) -> str:
    """Digest of everything that determines a picture: numbers, printed ones, cells, layout and the
    code that draws.
    """
    layout = table.layout
    return digest(
        repr(
            [
                replace(layout, oracles=frozenset()),
                sorted(layout.oracles),
                table.cells,
                published.published_table(run.name),
                [
                    (r.row, r.column, r.seed, r.status, r.measurements, r.arrays)
                    for r in table.records
                ],
                run.table.measure,
                [(row.key, row.role) for row in run.rows],
                [(cell.key, cell.code) for cell in run.cells],
                source_digest(module_of(run.table.measure), "benchmarks.publish.display"),
            ]
        )
    )
