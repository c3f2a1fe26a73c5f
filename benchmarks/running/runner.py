"""Reproduces tables: what is finished is taken from the cache, the rest is run, and files are
written.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedtables.benchmarks.running.machine import NEVER, Deadline, git_commit
from fedtables.benchmarks.running.table_run import TableRun
from fedtables.benchmarks.tables.cells import Cell
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection
from fedtables.benchmarks.tables.spec import TESTED_ON, Paper, Table
from fedtables.results import published
from fedtables.results.files import ResultsError, cache_home, check_writable
from fedtables.results.record import OK, Record
from fedtables.results.store import CellCache, TableFiles

if TYPE_CHECKING:
    from fedtables.benchmarks.running.events import Event
    from fedtables.benchmarks.running.ray_executor import Cluster


Log = Callable[[str, str, int, float], None]
"""Takes what a cell shows while it runs: the cell as text, a series (`loss/client 1`), the step and
the value (`fedtables.federation.watching`)."""


def prepare(
    tables: Iterable[tuple[Paper, Table]], selection: Selection, results: Path
) -> list[TableRun]:
    """The tables of a command, expanded into cells. Raises before anything runs if something is
    wrong with them.
    """
    runs = []
    others: dict[str, list[Record]] = {}
    for paper, table in tables:
        files = TableFiles(
            results, selection.profile, f"{paper.key}/{table.key}", selection.variant
        )
        cells = expand(paper, table, selection)
        runs.append(TableRun(paper, table, selection, cells, files, others=others))
    for run in runs:
        run.files.check_writable()
        run.before = frozenset(run.listed)
        if lost := run.lost([*run.finished(), *run.cells]):
            raise ResultsError(
                f"{run.files.path('csv')} would lose {several(lost)}, which this command neither"
                " computes nor finds in the cache as its code is now. Ask for them too (--only,"
                " --methods, --seeds), give --replace, or another folder with --results"
            )
    # Damaged records and printed numbers are told before hours of work, those of tables that claims
    # look at too.
    for paper in {run.paper.key: run.paper for run in runs}.values():
        published.claims(paper.key)
        for table in paper.tables:
            name = f"{paper.key}/{table.key}"
            published.published_table(name)
            TableFiles(results, selection.profile, name, selection.variant).listed_cells()
    every = [cell for run in runs for cell in run.cells]
    if selection.overrides or any(cell.is_private for cell in every):
        from fedtables.benchmarks.running.trial import try_settings

        try_settings(every, selection)
    check_writable(cache_home())
    return runs


def several(names: Sequence[str]) -> str:
    """The first three of some names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def take_finished(runs: Sequence[TableRun], fresh: bool) -> Counter[str]:
    """Fill `runs` with those of their cells without a record that are finished already; returns why
    cells that had an entry have to be computed again.
    """
    cache = CellCache()
    reasons: Counter[str] = Counter()
    for run in runs:
        for cell in () if fresh else run.cells:
            if cell.key in run.records:
                continue
            record, why = cache.get(cell.key, cell.code)
            if record is not None:
                run.records[cell.key] = record
            elif why:
                reasons[why] += 1
    return reasons


def execute(
    runs: Sequence[TableRun],
    jobs: int,
    fresh: bool,
    on_event: Callable[[Cell, Event], None],
    cluster: Cluster | None = None,
    log: Log | None = None,
    deadline: Deadline = NEVER,
) -> None:
    """Run the unfinished cells here or on a Ray cluster; every record is in the cache the moment
    its cell ends. `on_event` gets all that happens, `log` what cells show.

    Raises OutOfTimeError at the deadline.
    """
    from fedtables.benchmarks.running.events import Context
    from fedtables.benchmarks.running.pool import run_pool

    owner = {cell.key: run for run in runs for cell in run.cells}
    todo = unfinished(runs)
    if not todo:
        return
    cache = CellCache()
    context = Context(
        str((cache_home() / "stages").resolve()),
        time.time() if fresh else 0.0,
        *git_commit(),
        watched=log is not None,
    )
    if cluster is None:
        events = run_pool(todo, context, jobs, deadline)
    else:
        from fedtables.benchmarks.running.ray_executor import run_ray

        events = run_ray(todo, context, cluster, jobs, deadline)
    with contextlib.closing(events):  # whatever ends the loop ends the workers
        for event in events:
            cell = todo[event.cell]
            run = owner[cell.key]
            if event.record is not None:
                run.records[cell.key] = event.record
                if event.record.status == OK:
                    cache.put(event.record)
            if event.point is not None and log is not None:
                log(str(cell), event.point.series, event.point.step, event.point.value)
            _log(run, cell, event)
            on_event(cell, event)


def unfinished(runs: Sequence[TableRun]) -> list[Cell]:
    """The cells that are to be run, in their order: table by table, so that a command that is
    stopped leaves whole tables, and of a table the last rows first, for a paper's own method is its
    last and needs the most: it leaves the others little to compute. Of cells with one fit only the
    first comes so early, since the others would wait for it.
    """
    todo: list[Cell] = []
    for run in runs:
        place = {row.key: number for number, row in enumerate(run.table.rows)}
        cells = [cell for cell in run.cells if cell.key not in run.records]
        cells.sort(key=lambda cell: -place.get(cell.row, -1))
        first = {_fit(cell): cell for cell in reversed(cells)}
        todo += sorted(cells, key=lambda cell: first[_fit(cell)] is not cell)
    return todo


def _fit(cell: Cell) -> tuple[Any, ...]:
    """The same for cells that differ in what they are tested on alone."""
    config = tuple(pair for pair in cell.config if not pair[0].endswith(TESTED_ON))
    return (cell.row, cell.seed, config)


def _log(run: TableRun, cell: Cell, event: Event) -> None:
    """Note stages, ends and what is run again in the table's log."""
    if event.stage is not None:
        stage = event.stage
        done = f"computed in {stage.seconds:.1f} s" if stage.computed else "reused"
        note = f" ({stage.note})" if stage.note else ""
        named = f"{stage.kind} {stage.label} {stage.key[:12]}"
        line = f"  {cell.row} {cell.column}: {named} {done}{note}"
    elif event.record is not None:
        record = event.record
        how = f"{record.status} {record.reason} in {record.seconds:.1f} s"
        line = f"{cell}: {how}\n{event.text}"
    elif event.kind == "again":
        line = f"{cell}: {event.text}"
    else:
        return
    path = run.files.path("log")
    # A log line must not end a run whose cells can still be kept.
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as stream:
            stream.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line.rstrip()}\n")
