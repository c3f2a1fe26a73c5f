"""Regenerates tables: for `reproduce` and `sweep`, and as `fedtables.reproduce` for a notebook."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd
from rich.console import Console
from rich.markup import escape

from fedtables.benchmarks.commands.asked import check_execution, make_cluster, selected
from fedtables.benchmarks.commands.deciding import decide
from fedtables.benchmarks.reporting import cards
from fedtables.benchmarks.reporting.printing import print_table
from fedtables.benchmarks.reporting.writing import methods_of, write_table
from fedtables.benchmarks.running import machine, runner
from fedtables.benchmarks.running.machine import Deadline, OutOfTimeError
from fedtables.benchmarks.running.progress import Live
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import UNREAD, unread
from fedtables.benchmarks.tables.request import Request, takes
from fedtables.reports.tables.margins import LOOKS
from fedtables.results.cached import in_use
from fedtables.results.frame import tidy, with_keys
from fedtables.results.names import printable
from fedtables.results.plugins import plugged_in

if TYPE_CHECKING:
    from fedtables.benchmarks.running.ray_executor import Cluster
    from fedtables.benchmarks.tables.selection import Selection
    from fedtables.benchmarks.tables.spec import Paper, Table


@in_use()
def regenerate(
    console: Console,
    tables: Iterable[tuple[Paper, Table]],
    selection: Selection,
    request: Request,
    cluster: Cluster | None = None,
    log: runner.Log | None = None,
    remarks: Sequence[str] = (),
) -> list[runner.TableRun]:
    """Run the cells of `tables` that are not finished, as the request says, and write and print
    each table that has any. `remarks` are printed first, and `log` is told what the cells show
    while they run; what it raises ends the run.

    A cell that fails ends nothing; its record says why. Raises SpecError, DataError or ResultsError
    before anything runs, if the tables cannot be run as selected or files cannot be written.
    """
    deadline = Deadline.after(request.minutes)
    if request.decide and len(selection.seeds) < LOOKS[0]:
        first = selection.seeds[0]
        selection = replace(selection, seeds=tuple(range(first, first + LOOKS[0])))
        remarks = (*remarks, f"--decide begins with {LOOKS[0]} seeds")
    device, profile = selection.device, selection.profile
    runs = runner.prepare(tables, selection, request.results)
    nobody = unread([cell for run in runs for cell in run.cells], selection.overrides)
    for remark in (*remarks, *(f"--set {name}: {UNREAD}" for name in nobody)):
        console.print(escape(remark), soft_wrap=True)
    for reason, count in runner.take_finished(runs, request.fresh).items():
        cells = "1 cell" if count == 1 else f"{count} cells"
        console.print(f"{cells} to compute again: {reason}", markup=False, soft_wrap=True)
    total, cached = sum(len(run.cells) for run in runs), sum(len(run.records) for run in runs)
    todo = total - cached
    if todo:
        from fedtables.benchmarks.running.trial import check_cells

        check_cells(runner.unfinished(runs), stand_ins=request.stand_ins)
    workers = request.jobs or machine.default_jobs(device)
    where = (
        f"workers: {min(workers, todo)}"
        if cluster is None
        else f"by Ray ({escape(cluster.address)})"
    )
    console.print(
        f"{total} cells, {cached} finished before, {todo} to run"
        + (f", {where} on {device}" if todo else "")
    )

    def compute() -> None:
        runner.take_finished(runs, request.fresh)
        if left := len(runner.unfinished(runs)):
            jobs = request.jobs if cluster else workers
            with Live(console, left) as live:
                runner.execute(runs, jobs, request.fresh, live.show, cluster, log, deadline)

    if todo or request.decide:
        importlib.import_module(
            "fedtables.reports.drawing"
        )  # what it refuses it refuses before a cell
        with contextlib.suppress(OutOfTimeError):
            compute()
            if request.decide:
                decide(console, runs, request.most, compute)
    judge_plugins(console, runs)
    for run in (run for run in runs if run.records):
        with run.files.locked():
            table = write_table(run, request.plain)
        print_table(console, run, table)
        if profile != "paper":
            methods = methods_of(run, list(run.records.values()))
            text = cards.reduced(
                run.paper, run.table, profile, methods, dict(run.selection.overrides)
            )
            console.print(f"[dim]{escape(text)}[/]", soft_wrap=True)
        if profile == "smoke":
            console.print(
                "A smoke table shows that the code runs. It does not test what the paper found."
            )
    return runs


def judge_plugins(console: Console, runs: Sequence[runner.TableRun]) -> None:
    """Find what promises of a method the rows of plug-ins break, and say so."""
    for run in runs:
        known = registry.methods()
        for row in run.rows if plugged_in() else ():
            entry = known.get(row.method)
            if entry is None or entry.folder != "plugin":  # none: of an earlier command
                continue
            from fedtables.benchmarks.contract.promises import findings

            run.broken[row.key] = tuple(map(printable, findings(entry)))
            for finding in run.broken[row.key]:
                console.print(
                    f"[red]{escape(row.key)} breaks the contract[/]: {escape(finding)}",
                    soft_wrap=True,
                )


@takes(but=("tables", "log_to"), typed=True)
def reproduce(
    request: Request, table: str, *, quiet: bool = False, log: runner.Log | None = None
) -> pd.DataFrame:
    """Regenerate a table, as the command does, and return its cells.

    It takes the command's options by keyword. `only` is a mapping, as in `{"dataset": "mnist",
    "row": ["global-avg", "global-dlad"]}`. `settings` maps names of `--set` to values.

    Args:
        table: `paper/table`.
        quiet: print nothing.
        log: called as `log(cell, series, step, value)` while cells run: losses and metrics by epoch
            or round, bytes and epsilon by round.

    Returns:
        A line per cell, metric and seed, with the published value beside the measured one, and a
        column for every key of the table's columns. A failed cell has `status` `failed`.

    Raises:
        SpecError, DataError, ResultsError: the request is invalid. Nothing has run.
    """
    selection = selected(request, [table])
    check_execution(selection.execution, selection.device)
    console = Console(highlight=False, quiet=quiet)
    chosen = [registry.find_table(table)]
    [run] = regenerate(console, chosen, selection, request, make_cluster(request), log)
    finished = [run.records[cell.key] for cell in run.cells if cell.key in run.records]
    return with_keys(tidy(finished).assign(variant=selection.variant))
