"""`reproduce`: measured beside published; `sweep`: a table over privacy budgets."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import typer

from fedtables.benchmarks.commands.app import console, errors
from fedtables.benchmarks.commands.asked import (
    check_execution,
    make_cluster,
    selected,
    some_tables,
    table_names,
)
from fedtables.benchmarks.commands.from_file import FAILED_CELLS, OUT_OF_TIME, configured
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.request import TENSORBOARD, Request, option, takes
from fedtables.benchmarks.tables.selection import Selection, listed
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.benchmarks.tables.sweep import parse_epsilons, swept
from fedtables.federation.execution import DEFAULT
from fedtables.results.record import OK

if TYPE_CHECKING:
    from fedtables.benchmarks.running.runner import Log
    from fedtables.benchmarks.tables.spec import Paper, Table


@configured()
@takes()
def reproduce_tables(request: Request) -> None:
    """Regenerate tables: measured beside published, with pictures and judged claims.

    A smoke cell takes about four seconds of one core, the longest half a minute. (Measured on two
    cores of an AMD EPYC.) `plan` estimates a table on this machine.
    """
    names = table_names(some_tables(request.tables), request.protocol)
    selection = selected(request, names)
    check_execution(selection.execution, selection.device)
    run_tables([registry.find_table(name) for name in dict.fromkeys(names)], selection, request)


def _log_to(
    request: Request, selection: Selection
) -> contextlib.AbstractContextManager[Log | None]:
    """What takes the points of cells. Raises SpecError for what is not installed."""
    if not request.log_to:
        return contextlib.nullcontext()
    from fedtables.benchmarks.running.progress import TensorBoard

    variant = [selection.profile, *filter(None, [selection.variant])]
    return TensorBoard(request.results / TENSORBOARD / ".".join(variant))


def run_tables(
    tables: list[tuple[Paper, Table]],
    selection: Selection,
    request: Request,
    remarks: Sequence[str] = (),
) -> None:
    """Regenerate `tables`; exit code 1 if a cell failed, `OUT_OF_TIME` if the time was over before
    all were finished.
    """
    from fedtables.benchmarks.commands.regeneration import regenerate

    with _log_to(request, selection) as log:
        cluster = make_cluster(request)
        runs = regenerate(console, tables, selection, request, cluster, log, remarks)
    failed = sum(record.status != OK for run in runs for record in run.records.values())
    if failed:
        errors.print(
            f"[red]failed cells: {failed}[/]. Reasons are above, tracebacks in each table's .log."
        )
        raise typer.Exit(FAILED_CELLS)
    if left := sum(cell.key not in run.records for run in runs for cell in run.cells):
        errors.print(
            f"the {request.minutes:g} minutes are over with {left} cells to go. Finished cells and"
            " stages are kept. The same command, without --fresh, goes on from there.",
            soft_wrap=True,
        )
        raise typer.Exit(OUT_OF_TIME)


@dataclass(frozen=True)
class Swept:
    """Options of `sweep`; the help text says what each one means."""

    epsilon: tuple[str, ...] = option(
        ("3.5", "6", "7.7", "10"), parse_epsilons, "privacy budgets (epsilon), as in 1,3,10"
    )


@configured()
@takes(of=Swept)
@takes(
    *("tables", "profile", "only", "methods", "seeds", "settings", "plugins"),
    *("require_real", "stand_ins", "jobs", "device", "threads"),
    *("ray", "num_cpus", "num_gpus", "fresh", "results", "replace"),
)
def sweep_budgets(request: Request, over: Swept) -> None:
    """Run a table's rows at several privacy budgets and without one; plot them over epsilon."""
    if len(request.tables) != 1:
        raise SpecError(f"sweep needs exactly one table, not {len(request.tables)}")
    [table] = request.tables
    # Private cells train without extras, and those without a budget are compared with them.
    selection = replace(selected(request, [table]), execution=DEFAULT)
    paper, spec = registry.find_table(table)
    derived, left_out = swept(paper, spec, selection, over.epsilon)
    wanted = (selection.only or {}).get("row")
    remarks = [
        f"{row.title} is left out: {row.method} has no private form"
        for row in left_out
        if wanted is None or row.key in {*selection.add, *listed(wanted, ())}
    ]
    swept_selection = replace(selection, add=(), drop=())
    run_tables([(paper, derived)], swept_selection, request, remarks=remarks)
