"""`reproduce`: measured beside published."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.markup import escape

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
    Methods,
    Only,
    Override,
    Plugins,
    Precision,
    Profile,
    Protocol,
    Ray,
    RayCache,
    RayCpus,
    RayGpus,
    RequireReal,
    Results,
    Seeds,
    Stacked,
    Tables,
    Threads,
)
from benchmarks.tables import registry

if TYPE_CHECKING:
    from benchmarks.running.ray_executor import Cluster
    from benchmarks.tables.cells import Selection
    from benchmarks.tables.spec import Paper, Table


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
    results: Results = Path("results"),
    override: Override = None,
    precision: Precision = "fp32",
    compiled: Compile = "off",
    stacked: Stacked = 1,
    ray: Ray = "",
    num_cpus: RayCpus = 0,
    num_gpus: RayGpus = None,
    ray_cache: RayCache = "",
) -> None:
    """Regenerate tables: measured beside published, pictures, and the paper's claims judged."""
    device = device or ("cuda" if profile == "paper" else "cpu")
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
        selection, overrides=parse_settings(names, override or [], selection.plugins)
    )
    check_execution(selection.execution, device)
    cluster = make_cluster(ray, num_cpus, num_gpus, ray_cache, device, threads)
    run_tables(
        [registry.find_table(name) for name in dict.fromkeys(names)],
        selection,
        jobs,
        fresh,
        results,
        cluster,
    )


def run_tables(
    tables: list[tuple[Paper, Table]],
    selection: Selection,
    jobs: int,
    fresh: bool,
    results: Path,
    cluster: Cluster | None = None,
) -> None:
    """Run the cells of `tables` that are not finished, and write and print each table."""
    from benchmarks.publish.display import Live, print_table
    from benchmarks.running import machine, runner
    from benchmarks.tables import cards

    device, profile = selection.device, selection.profile
    runs = runner.prepare(tables, selection, results)
    progress = runner.take_finished(runs, fresh)
    for reason, count in progress.reasons.items():
        console.print(f"{count} cells to compute again: {reason}")
    todo = progress.total - progress.cached
    workers = jobs or machine.default_jobs(device)
    where = f"workers: {min(workers, todo)}" if cluster is None else f"by Ray ({cluster.address})"
    console.print(
        f"{progress.total} cells, {progress.cached} finished before, {todo} to run"
        + (f", {where} on {device}" if todo else "")
    )
    if todo:
        with Live(console, todo) as live:
            runner.execute(
                runs,
                jobs if cluster else workers,
                fresh,
                live.started,
                live.progressed,
                live.staged,
                live.done,
                cluster,
            )
    failed = 0
    for run in runs:
        failed += print_table(console, run, cards.markdown(run.paper, run.table, selection))
        if profile != "paper":
            console.print(f"[dim]{escape(cards.reduced(run.paper, profile))}[/]", soft_wrap=True)
        if profile == "smoke":
            console.print("A smoke table proves that the table runs, not what the paper found.")
    if failed:
        errors.print(
            f"[red]failed cells: {failed}[/]; reasons above, tracebacks in the .log beside each"
            " table"
        )
        raise typer.Exit(1)
