"""`reproduce`: measured beside published."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from benchmarks.commands.app import app, console, errors
from benchmarks.commands.asked import (
    check_execution,
    make_cluster,
    make_selection,
    parse_settings,
    some_tables,
    table_names,
)
from benchmarks.commands.options import (
    Compile,
    Device,
    Fresh,
    Jobs,
    LogTo,
    Methods,
    Minutes,
    Only,
    Override,
    Plain,
    Plugins,
    Precision,
    Profile,
    Protocol,
    Ray,
    RayCache,
    RayCpus,
    RayGpus,
    Replace,
    RequireReal,
    Results,
    Seeds,
    Stacked,
    Tables,
    Threads,
)
from benchmarks.tables import registry
from benchmarks.tables.spec import SpecError, usual_device
from results.files import RUNS
from results.names import near
from results.record import OK

if TYPE_CHECKING:
    from benchmarks.running.ray_executor import Cluster
    from benchmarks.running.runner import Log
    from benchmarks.tables.selection import Selection
    from benchmarks.tables.spec import Paper, Table


TENSORBOARD = "tensorboard"
OUT_OF_TIME = 75
"""Exit code of a run that has to go on: EX_TEMPFAIL of BSD's sysexits."""


@app.command("reproduce")
def reproduce_tables(
    tables: Tables = None,
    profile: Profile = "smoke",
    protocol: Protocol = "paper",
    only: Only = None,
    methods: Methods = "",
    seeds: Seeds = "0",
    jobs: Jobs = 0,
    device: Device = "",
    threads: Threads = 1,
    require_real: RequireReal = False,
    plugin: Plugins = None,
    fresh: Fresh = False,
    results: Results = RUNS,
    override: Override = None,
    precision: Precision = "",
    compiled: Compile = "",
    stacked: Stacked = 1,
    ray: Ray = "",
    num_cpus: RayCpus = 0,
    num_gpus: RayGpus = None,
    ray_cache: RayCache = "",
    plain: Plain = False,
    minutes: Minutes = 0,
    log_to: LogTo = "",
    replaced: Replace = False,
) -> None:
    """Regenerate tables: measured beside published, pictures, and the paper's claims judged.

    At smoke a cell takes some three seconds of one core, the longest half a minute: so the records
    in results/reference/smoke, from a machine with two cores (Intel Xeon). `plan` estimates a table
    on this machine.
    """
    device = device or usual_device(profile)
    selection = make_selection(
        profile,
        protocol,
        only or [],
        methods,
        seeds,
        device,
        threads,
        require_real,
        plugin or [],
        precision,
        compiled,
        stacked,
    )
    names = table_names(some_tables(tables), protocol)
    selection = replace(
        selection,
        overrides=parse_settings(names, override or [], selection.plugins),
        may_lose=replaced,
    )
    check_execution(selection.execution, device)
    cluster = make_cluster(ray, num_cpus, num_gpus, ray_cache, device, threads)
    with _log_to(log_to, results, selection) as log:
        run_tables(
            [registry.find_table(name) for name in dict.fromkeys(names)],
            selection,
            jobs,
            fresh,
            results,
            cluster,
            plain,
            minutes,
            log,
        )


def _log_to(
    where: str, results: Path, selection: Selection
) -> contextlib.AbstractContextManager[Log | None]:
    """What takes the points of cells. Raises SpecError for what is not known or not installed."""
    if not where:
        return contextlib.nullcontext()
    if where != TENSORBOARD:
        raise SpecError(f"--log-to {where}: no such value; {near(where, (TENSORBOARD,))}")
    from benchmarks.publish.tensorboard import TensorBoard

    variant = [selection.profile, *filter(None, [selection.variant])]
    return TensorBoard(results / TENSORBOARD / ".".join(variant))


def run_tables(
    tables: list[tuple[Paper, Table]],
    selection: Selection,
    jobs: int,
    fresh: bool,
    results: Path,
    cluster: Cluster | None = None,
    plain: bool = False,
    minutes: float = 0,
    log: Log | None = None,
    remarks: Sequence[str] = (),
) -> None:
    """Regenerate `tables`; exit code 1 if a cell failed, `OUT_OF_TIME` if the time was over before
    all were finished.
    """
    from benchmarks.publish.regeneration import regenerate

    runs = regenerate(
        console, tables, selection, jobs, fresh, results, cluster, plain, minutes, log, remarks
    )
    failed = sum(record.status != OK for run in runs for record in run.records.values())
    if failed:
        errors.print(
            f"[red]failed cells: {failed}[/]; reasons above, tracebacks in the .log beside each"
            " table"
        )
        raise typer.Exit(1)
    if left := sum(cell.key not in run.records for run in runs for cell in run.cells):
        errors.print(
            f"the {minutes:g} minutes are over with {left} cells to go. Finished cells and stages"
            " are kept; the same command, without --fresh, goes on from there.",
            soft_wrap=True,
        )
        raise typer.Exit(OUT_OF_TIME)
