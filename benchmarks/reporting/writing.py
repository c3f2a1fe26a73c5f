"""Writes the files of a table: numbers, records, claims, page and picture."""

import contextlib
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from fedtables.benchmarks.reporting import cards
from fedtables.benchmarks.reporting.command import command_of, run_file_of
from fedtables.benchmarks.reporting.layout import layout_of
from fedtables.benchmarks.reporting.verdicts import judge_claims
from fedtables.benchmarks.running.runner import several
from fedtables.benchmarks.running.table_run import TableRun
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.derived import with_derived
from fedtables.reports.measures.kind import draw_table, find_kind
from fedtables.reports.pages.sheet import Sheet
from fedtables.reports.tables.table import ShownTable
from fedtables.results import published
from fedtables.results.files import (
    ResultsError,
    cache_home,
    digest,
    file_digest,
    read_sealed_json,
    write_atomic,
    write_sealed_json,
)
from fedtables.results.published import format_column
from fedtables.results.record import Record
from fedtables.results.sourcecode import source_digest
from fedtables.results.store import summarise, write_csv, write_sealed_csv


def write_table(run: TableRun, plain: bool = False) -> ShownTable:
    """Write all files of a table; pictures without title and provenance if `plain`. Returns the
    table as they have it, with what earlier commands have left of it.

    Whoever calls it has locked the files, so that of two commands on one table the last to write
    has the cells of both. Raises ResultsError as `write_numbers`.
    """
    lines, records = write_numbers(run)
    layout = layout_of(run, records)
    clients = tuple(row.key for row in run.rows if row.role)
    table = ShownTable(layout, lines, records, run.table.metrics, clients)
    claims = judge_claims(run, records)
    table = replace(table, told=_told(run, table), claims=claims)
    sheet = Sheet(
        *(layout, run.paper.title, run.paper.citation, run.table.measure, table.told),
        card=tuple(cards.markdown(run.paper, run.table, run.selection, methods_of(run, records))),
        command=command_of(run, records),
        metrics=table.metrics,
        clients=clients,
    )
    sheet.write(run.files.path("layout.json"))
    write_atomic(run.files.path("md"), sheet.markdown(table))
    write_atomic(run.files.path("run.toml"), run_file_of(run, records))
    if claims:
        write_sealed_csv(run.files.path("claims.csv"), claims)
    draw(run, replace(table, layout=layout.plain()) if plain else table)
    return table


def _told(run: TableRun, table: ShownTable) -> tuple[str, ...]:
    """What a reader is told beside the table's numbers and its legend."""
    told = find_kind(run.table.measure).remarks(table)
    told += [f"{format_column(dict(c))} is not measured: {why}" for c, why in run.table.unmeasured]
    left = "as an earlier command left it, for its plug-in was not given"
    return (*told, *(f"{row.title}: {left}" for row in run.left))


def write_numbers(run: TableRun) -> tuple[pd.DataFrame, list[Record]]:
    """Write the table's CSV and the records beside it; returns their lines and the records. Raises
    ResultsError if the files would lose cells, which those that were not run in time may be.
    """
    run.read_files()
    records = run.all_records()
    if lost := run.lost(records):
        raise ResultsError(
            f"{run.files.path('csv')} is left as it was, with {several(lost)}: what was run is"
            " kept, and the same command goes on from there"
        )
    kind = find_kind(run.table.measure)
    whole = with_derived(records, run.table.derived)
    lines = summarise(kind.completed(whole, run.table.metrics))
    run.files.write_records(records)
    run.others.pop(run.table.key, None)
    write_csv(run.files.path("csv"), lines)
    return lines, records


def methods_of(run: TableRun, records: Sequence[Record]) -> set[str]:
    """The methods whose settings the records' cells have."""
    rows = {record.row for record in records}
    measure = registry.find_measure(run.table.measure)
    return {
        *(row.method for row in run.rows if row.key in rows),
        *(name for record in records for name in record.lineage),
        *(name for record in records for name in measure.methods(record.config)),
    }


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
    draw_table(run.table.measure, table, path)
    if path.exists():  # a table without numbers has no picture
        write_sealed_json(note, {"shows": shows, "file": file_digest(path)})


def _shown(run: TableRun, table: ShownTable) -> str:
    """Digest of everything that determines a picture: numbers, printed ones, layout and the code
    that draws.
    """
    layout = replace(table.layout, oracles=frozenset()), sorted(table.layout.oracles)
    found = [(r.row, r.column, r.seed, r.measurements, r.arrays) for r in table.records]
    kind = find_kind(run.table.measure)
    code = source_digest(type(kind).__module__, kind.drawn_by.rpartition(".")[0])
    printed = published.published_table(run.name)
    return digest(repr([layout, table.cells, table.clients, found, printed, code]))
