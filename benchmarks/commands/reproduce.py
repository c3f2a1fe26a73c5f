"""`reproduce`: measured beside published; `sweep`: a table over privacy budgets."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedtables.benchmarks.commands.app import console, errors
from fedtables.benchmarks.commands.asked import (
    Tables,
    check_execution,
    make_cluster,
    selected,
    some_tables,
    table_names,
)
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.request import Request, choice, takes
from fedtables.results.record import OK

if TYPE_CHECKING:
    from fedtables.benchmarks.running.runner import Log
    from fedtables.benchmarks.tables.selection import Selection
    from fedtables.benchmarks.tables.spec import Paper, Table


TENSORBOARD = "tensorboard"
OUT_OF_TIME = 75
"""Exit code of a run that has to go on: EX_TEMPFAIL of BSD's sysexits."""


@takes()
def reproduce_tables(
    request: Request,
    tables: Tables = None,
    log_to: Annotated[
        str,
        typer.Option(
            metavar="tensorboard",
            help="keep losses, metrics, bytes and epsilon as they grow, in RESULTS/tensorboard",
        ),
    ] = "",
) -> None:
    """Regenerate tables: measured beside published, pictures, and the paper's claims judged.

    At smoke a cell takes some four seconds of one core, the longest half a minute. So the records
    in results/reference/smoke say, from two cores of an AMD EPYC. `plan` estimates a table here.
    """
    names = table_names(some_tables(tables), request.protocol)
    selection = selected(request, names)
    check_execution(selection.execution, selection.device)
    with _log_to(log_to, request.results, selection) as log:
        run_tables(
            [registry.find_table(name) for name in dict.fromkeys(names)], selection, request, log
        )


def _log_to(
    where: str, results: Path, selection: Selection
) -> contextlib.AbstractContextManager[Log | None]:
    """What takes the points of cells. Raises SpecError for what is not known or not installed."""
    if not where:
        return contextlib.nullcontext()
    choice("--log-to", where, (TENSORBOARD,))
    from fedtables.benchmarks.running.progress import TensorBoard

    variant = [selection.profile, *filter(None, [selection.variant])]
    return TensorBoard(results / TENSORBOARD / ".".join(variant))


def run_tables(
    tables: list[tuple[Paper, Table]],
    selection: Selection,
    request: Request,
    log: Log | None = None,
    remarks: Sequence[str] = (),
) -> None:
    """Regenerate `tables`; exit code 1 if a cell failed, `OUT_OF_TIME` if the time was over before
    all were finished.
    """
    from fedtables.benchmarks.commands.regeneration import regenerate

    cluster = make_cluster(request)
    runs = regenerate(console, tables, selection, request, cluster, log, remarks)
    failed = sum(record.status != OK for run in runs for record in run.records.values())
    if failed:
        errors.print(
            f"[red]failed cells: {failed}[/]; reasons above, tracebacks in the .log beside each"
            " table"
        )
        raise typer.Exit(1)
    if left := sum(cell.key not in run.records for run in runs for cell in run.cells):
        errors.print(
            f"the {request.minutes:g} minutes are over with {left} cells to go. Finished cells and"
            " stages are kept; the same command, without --fresh, goes on from there.",
            soft_wrap=True,
        )
        raise typer.Exit(OUT_OF_TIME)


@takes(
    *("profile", "only", "methods", "seeds", "settings", "plugins", "require_real"),
    *("jobs", "device", "threads", "ray", "num_cpus", "num_gpus", "ray_cache"),
    *("fresh", "results", "replace"),
)
def sweep_budgets(
    request: Request,
    table: Annotated[str, typer.Argument(help="paper/table")],
    epsilon: Annotated[str, typer.Option(help="privacy budgets, as in 1,3,10")] = "3.5,6,7.7,10",
) -> None:
    """A table's rows over privacy budgets, and without one: CSV, and a plot over epsilon."""
    from fedtables.benchmarks.tables.selection import listed
    from fedtables.benchmarks.tables.sweep import parse_epsilons, swept
    from fedtables.federation.execution import DEFAULT

    # Private cells train without extras, and those without a budget are compared with them.
    selection = replace(selected(request, [table]), execution=DEFAULT)
    paper, spec = registry.find_table(table)
    derived, left_out = swept(paper, spec, selection, parse_epsilons(epsilon))
    wanted = (selection.only or {}).get("row")
    remarks = [
        f"left out {row.title}: {row.method} has no private form"
        for row in left_out
        if wanted is None or row.key in {*selection.add, *listed(wanted, ())}
    ]
    swept_selection = replace(selection, add=(), drop=())
    run_tables([(paper, derived)], swept_selection, request, remarks=remarks)
