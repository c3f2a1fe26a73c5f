"""What a command shows: progress while it runs, and a table's numbers, plot, claims and files when
it ends.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from benchmarks.running.runner import TableRun, finished_records, write_table
from benchmarks.tables import registry
from benchmarks.tables.cells import Cell, matches
from benchmarks.tables.spec import Table
from datasets import catalogue
from metrics.names import BANDWIDTH
from reports.kinds.kind import Regenerated, find_kind, module_of
from reports.pages.sheet import Sheet
from reports.tables.table import Layout, legend, markdown, terminal_tables
from results import published
from results.files import (
    cache_home,
    digest,
    file_digest,
    read_sealed_json,
    write_atomic,
    write_sealed_json,
)
from results.published import format_column, parse_column
from results.record import OK, Record
from results.sourcecode import source_digest
from results.store import Line, TableFiles, records_of, write_csv

if TYPE_CHECKING:
    import numpy as np

    from federation.caching.events import StageEvent
    from reports.tables.claims import Tables, Value


def progress_bar(console: Console) -> Progress:
    """What is done, in how long, and how long it still takes; gone when it ends."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )


class Live:
    """Progress bars: one over cells with the time that is left, and a line per worker with what it
    is doing.
    """

    def __init__(self, console: Console, total: int):
        self.console = console
        self.stages: Counter[tuple[str, bool]] = Counter()
        self.bar = progress_bar(console)
        self.cells = self.bar.add_task("cells", total=total)
        self.workers: dict[int, TaskID] = {}
        self.doing: dict[int, str] = {}

    def __enter__(self) -> Live:
        self.bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.bar.stop()
        for kind in dict.fromkeys(kind for kind, _ in self.stages):
            self.console.print(
                f"stages {kind}: {self.stages[kind, True]} computed, {self.stages[kind, False]}"
                " reused"
            )

    def started(self, worker: int, cell: Cell) -> None:
        if worker not in self.workers:
            self.workers[worker] = self.bar.add_task("", total=1.0)
        self.doing[worker] = f"{cell.row} {cell.column}"
        self.bar.reset(
            self.workers[worker], total=1.0, description=f"  {escape(self.doing[worker])}"
        )

    def progressed(self, worker: int, text: str, share: float) -> None:
        self.bar.update(
            self.workers[worker],
            completed=share,
            description=f"  {escape(self.doing[worker])}: {escape(text)}",
        )

    def staged(self, cell: Cell, event: StageEvent) -> None:
        self.stages[event.kind, event.computed] += 1
        if event.note:
            self.console.print(f"[yellow]{event.kind} {event.label}: {event.note}[/]")

    def done(self, worker: int, cell: Cell, record: Record) -> None:
        self.bar.advance(self.cells)
        if record.status == OK:
            last = {
                m.metric: f"{m.value:.4g}" if isinstance(m.value, float) else m.value
                for m in record.measurements
            }
            values = ", ".join(
                f"{name} {value}" if len(last) > 1 else value for name, value in last.items()
            )
            line = (
                f"[green]done[/]   {cell.row} {cell.column} seed {cell.seed}: {values} in"
                f" {record.seconds:.1f} s"
            )
            self.console.print(line, soft_wrap=True)
        else:
            self.console.print(
                f"[red]failed[/] {cell.row} {cell.column} seed {cell.seed}:"
                f" {escape(record.reason)}",
                soft_wrap=True,
            )


def layout_of(run: TableRun, records: Sequence[Record]) -> Layout:
    """How the table is drawn: rows and columns in print order, and the labels that say what it was
    made from.
    """
    seeds = sorted({r.seed for r in records})
    profile = run.selection.profile
    rows = {record.row for record in records}
    titles = {row.key: row for row in run.rows}
    return Layout(
        key=run.name,
        title=run.table.title,
        caption=run.table.caption,
        rows={
            key: titles[key].title + _other_protocols(key, run.selection.protocol, records)
            for key in titles
            if key in rows
        },
        oracles=frozenset(key for key in titles if titles[key].upper_bound),
        own=run.table.rows[-1].key if run.table.own is None else run.table.own,
        x_axis=run.table.x_axis,
        columns=tuple(format_column(dict(column)) for column in run.table.columns),
        labels=(
            f"profile {profile}" + ("" if profile == "paper" else " (reduced)"),
            f"{len(seeds)} seed" + ("s" if len(seeds) != 1 else "") + _moved(run.table),
            f"protocol {run.selection.protocol}",
            *(f"set {name} = {value}" for name, value in run.selection.overrides),
            *_scaled(run, records),
            *([run.selection.execution.label] if run.selection.execution.label else []),
            *_networks_of(records),
            *_privacy_of(records),
            *_data_labels([d for r in records for d in (r.data, *r.others)]),
            *(
                f"public data of methods that use any: {label}"
                for label in _data_labels([r.public for r in records])
            ),
            *(
                f"clients' private data: {label}"
                for label in _data_labels([r.private for r in records])
            ),
            *(
                dict.fromkeys(r.statistic for r in records if r.statistic)
                if find_kind(run.table.measure).statistic
                else ()
            ),
        ),
        notes=_notes_of(records),
        unit=run.table.unit,
    )


def _data_labels(found: Sequence[Mapping[str, str]]) -> list[str]:
    """`MNIST (real)` and the like, once for every data set asked for."""
    used = {(d["asked"], d["used"]): d for d in found if d}
    return [
        catalogue.ResolvedData(d["asked"], d["used"], d["origin"], d["digest"], d["note"]).label
        for d in used.values()
    ]


def _other_protocols(row: str, protocol: str, records: Sequence[Record]) -> str:
    """` [released]` for a row that was run under another protocol than the table's."""
    others = sorted({r.protocol for r in records if r.row == row} - {protocol})
    return f" [{', '.join(others)}]" if others else ""


def _moved(table: Table) -> str:
    """Which randomness a table's seeds move, where it is not the paper's."""
    return f" of {', '.join(table.seed_axes)}" if table.seed_axes else ""


def _privacy_of(records: Sequence[Record]) -> list[str]:
    """The accountant of private runs."""
    found = [r.privacy for r in records if r.epsilon is not None]
    return list(
        dict.fromkeys(
            f"epsilon at delta {p['delta']:g} by the {p['accountant']} accountant" for p in found
        )
    )


def _notes_of(records: Sequence[Record]) -> tuple[str, ...]:
    """What private runs note, and by which conventions they count, with the rows that do."""
    notes: dict[str, dict[str, None]] = {}
    for record in records:
        for note in record.privacy.get("notes", ()):
            notes.setdefault(note, {})[record.row] = None
        if record.epsilon is not None:
            p = record.privacy
            convention = (
                f"epsilon: {p['adjacency']}; sampling: {p['sampling']}; public: {p['public']};"
                f" trust: {p['trust']}"
            )
            notes.setdefault(convention, {})[record.row] = None
    return tuple(f"{', '.join(rows)}: {note}" for note, rows in notes.items())


def _networks_of(records: Sequence[Record]) -> list[str]:
    """`resnet is cnn` where the profile replaces a network that the rows name."""
    found: dict[str, set[str]] = {}
    for record in records:
        for part in [
            *str(record.config.get("network.client", "")).split("+"),
            str(record.config.get("network.server", "")),
        ]:
            found.setdefault(part, set()).add(str(record.config.get(f"network.{part}", part)))
    return [
        f"{role} is {' or '.join(sorted(names))}"
        for role, names in found.items()
        if names != {role}
    ]


def values_of(records: Sequence[Record]) -> list[Value]:
    """Mean values over the records' seeds, for claims."""
    from reports.tables.claims import Value

    groups: dict[tuple[str, str, str], list[float]] = {}
    for record in records:
        for m in record.measurements if record.status == OK else ():
            if isinstance(m.value, float):
                groups.setdefault(
                    (record.row, f"{record.column} {m.column}".strip(), m.metric), []
                ).append(m.value)
    return [
        Value(row, parse_column(column), metric, sum(v) / len(v))
        for (row, column, metric), v in groups.items()
    ]


def judge_claims(run: TableRun, records: Sequence[Record]) -> list[dict[str, str]]:
    """Verdicts on the paper's claims about this table; other tables that a claim needs come from
    finished cells.
    """
    from reports.tables.claims import judge_claim

    judged, at_which = find_kind(run.table.measure).judged(
        records, run.table.metrics, run.table.unit
    )
    ours = {run.table.key: judged}
    plain = replace(run.selection, add=(), drop=())
    for table in run.paper.tables:
        if table.key != run.table.key and registry.find_measure(table.measure).numbers:
            files = TableFiles(
                run.files.base.parents[2],
                plain.profile,
                f"{run.paper.key}/{table.key}",
                plain.variant,
            )
            ours[table.key] = finished_records(run.paper, table, plain, files)
    seeds = sorted({r.seed for r in records})
    origins = " ".join(sorted({f"{r.data['asked']}:{r.data['origin']}" for r in records if r.data}))
    shape = None
    means: Tables = {name: values_of(found) for name, found in ours.items()}
    per_seed: list[Tables] = [
        {n: values_of([r for r in found if r.seed == seed]) for n, found in ours.items()}
        for seed in seeds
    ]
    if run.table.unmeasured:
        shape = {**means, run.table.key: [*means[run.table.key], *_unmeasured(run, records)]}
    lines = []
    for claim in published.claims(run.paper.key):
        if claim.table.replace("fig", "figure") != run.table.key and claim.table != run.table.key:
            continue
        alone = _of_what(run.table, seeds)
        verdict = judge_claim(claim, run.paper.key, means, per_seed, shape)
        lines.append(
            {
                "id": claim.id,
                "claim": claim.claim,
                "verdict": (
                    verdict.word + at_which + alone
                    if verdict
                    else "not judged (the paper prints no values)"
                ),
                "held": str(verdict.held if verdict else ""),
                "failed": str(verdict.failed if verdict else ""),
                "undecided": str(verdict.undecided if verdict else ""),
                "in_print": f"{claim.holds_in_print} {claim.cells}".strip(),
                "seeds": str(len(seeds)),
                "profile": run.selection.profile,
                "data": origins,
                "fails_at": " | ".join(verdict.fails_at) if verdict else "",
            }
        )
    return lines


def _unmeasured(run: TableRun, records: Sequence[Record]) -> list[Value]:
    """A value that is none, for every cell of the columns that the suite does not measure: they
    count as missing.
    """
    from reports.tables.claims import Value

    return [
        Value(row, column, metric, math.nan)
        for column, _ in run.table.unmeasured
        for row in dict.fromkeys(record.row for record in records)
        for metric in (*run.table.metrics, BANDWIDTH)
    ]


def _of_what(table: Table, seeds: Sequence[int]) -> str:
    """What a verdict's spread over seeds leaves out."""
    return (
        f" (spread of {', '.join(table.seed_axes)} alone)"
        if table.seed_axes and len(seeds) > 1
        else ""
    )


def print_table(console: Console, run: TableRun, card: Sequence[str]) -> None:
    """Write all files of a table, and print it."""
    lines, records = write_table(run)
    layout = layout_of(run, records)
    console.print(
        f"\n[bold]{run.name}: {escape(layout.title)}.[/]"
        f" {escape(layout.caption)}\n{escape('; '.join(layout.labels))}"
    )
    write_arrays(run, records)
    made = made_table(run, layout, records_of(lines), records)
    told = [
        *find_kind(run.table.measure).remarks(made),
        *(
            f"{format_column(dict(column))} is not measured: {why}"
            for column, why in run.table.unmeasured
        ),
    ]
    sheet = Sheet(
        layout, run.paper.title, run.paper.citation, run.table.measure, tuple(told), tuple(card)
    )
    shown = sheet.shown(lines)
    for table in terminal_tables(layout, shown):
        console.print(table)
    notes = [*told, *legend(layout, shown)]
    wanted = [
        row.key
        for row in run.rows
        if any(matches(row, column, run.selection.only or {}) for column in run.table.columns)
    ]
    for key in run.selection.add:
        if key not in wanted:
            notes.append(
                f"--only leaves out row {key}, which --methods adds; name it in --only row=... too"
            )
        elif key not in {record.row for record in records}:
            notes.append(
                f"row {key} has no cell here: the public set's labels are not of the task's classes"
            )
    earlier = len(records) - len(run.records)
    if earlier > 0:
        notes.append(
            f"{earlier} cells are from earlier commands into this folder; the records say when"
        )
    for note in notes:
        console.print(f"[dim]{escape(note)}[/]", soft_wrap=True)
    claims = judge_claims(run, records)
    for claim in claims:
        console.print(
            f"claim: {escape(claim['claim'])}: [bold]{claim['verdict']}[/] (in print:"
            f" {claim['in_print']})",
            soft_wrap=True,
        )
    if claims and len({r.seed for r in records}) == 1:
        console.print("[dim]verdicts at one seed carry no spread; --seeds 0,1,2 gives one[/]")
    files = [run.files.path("csv"), run.files.path("md"), run.files.path("records.jsonl")]
    sheet.write(run.files.path("layout.json"))
    page = markdown(
        layout, shown, [(c["claim"], c["verdict"], c["in_print"]) for c in claims], card, told
    )
    write_atomic(run.files.path("md"), page)
    if claims:
        write_csv(run.files.path("claims.csv"), claims, list(claims[0]))
        files.append(run.files.path("claims.csv"))
    draw(run, made)
    console.print(
        "wrote " + ", ".join(str(path) for path in [*files, run.files.path("png")]), soft_wrap=True
    )


def made_table(
    run: TableRun, layout: Layout, lines: Sequence[Line], records: Sequence[Record]
) -> Regenerated:
    """What the table's kind is shown with."""
    first = {cell.row: cell for cell in run.cells}

    def label_counts() -> dict[str, np.ndarray]:
        from benchmarks.publish.partition import cell_counts

        return {row: cell_counts(cell) for row, cell in first.items()}

    return Regenerated(
        layout,
        lines,
        records,
        run.table.metrics,
        clients=[row.key for row in run.rows if row.role],
        arrays=run.files.path("safetensors"),
        label_counts=label_counts,
    )


def write_arrays(run: TableRun, records: Sequence[Record]) -> None:
    """The arrays of the records as the one file that the picture is drawn from, where the table's
    kind has one.
    """
    path, arrays = run.files.path("safetensors"), find_kind(run.table.measure).arrays(records)
    if arrays:
        write_atomic(path, arrays)
    elif arrays is not None:
        path.unlink(missing_ok=True)


def _scaled(run: TableRun, records: Sequence[Record]) -> list[str]:
    """What the sizes that columns name are here, where a profile scales them or the set that stands
    in is too small.
    """
    told = []
    for key, entry in run.table.scaled.items():
        named = {
            parse_column(record.column).get(key, ""): str(_public_size(record, entry))
            for record in records
        }
        sizes = {size: own for size, own in named.items() if size.isdigit() and size != own}
        if sizes:
            told.append(
                f"{key} {', '.join(sizes)} {'is' if len(sizes) == 1 else 'are'}"
                f" {', '.join(sizes.values())} here ({entry})"
            )
    return told


def _public_size(record: Record, entry: str) -> int:
    """Public images that a cell asks for with a limit, or as many as its set has."""
    there = catalogue.source(str(record.public["used"])).sizes["train"] if record.public else 0
    return min((size for size in (int(record.config[entry]), there) if size), default=0)


def draw(run: TableRun, table: Regenerated) -> None:
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
    find_kind(run.table.measure).draw(table, path)
    if path.exists():  # a table without numbers has no picture
        write_sealed_json(note, {"shows": shows, "file": file_digest(path)})


def _shown(run: TableRun, table: Regenerated) -> str:
    """Digest of everything that determines a picture: numbers, printed ones, cells, layout and the
    code that draws.
    """
    layout, arrays = table.layout, table.arrays
    return digest(
        repr(
            [
                replace(layout, oracles=frozenset()),
                sorted(layout.oracles),
                table.lines,
                published.published_table(run.name),
                [(r.row, r.column, r.seed, r.status, r.measurements) for r in table.records],
                file_digest(arrays) if arrays.exists() else "",
                run.table.measure,
                [(row.key, row.role) for row in run.rows],
                [(cell.key, cell.code) for cell in run.cells],
                source_digest(module_of(run.table.measure), "benchmarks.publish.display"),
                metadata.version("matplotlib"),
            ]
        )
    )
