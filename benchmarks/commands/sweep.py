"""`sweep`: a table over privacy budgets."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from benchmarks.commands.app import app
from benchmarks.commands.asked import make_cluster, make_selection, parse_settings
from benchmarks.commands.options import (
    Device,
    Fresh,
    Jobs,
    Methods,
    Only,
    Override,
    Plugins,
    Profile,
    Ray,
    RayCache,
    RayCpus,
    RayGpus,
    Replace,
    RequireReal,
    Results,
    Seeds,
    Threads,
)
from benchmarks.commands.reproduce import run_tables
from benchmarks.tables import registry
from results.files import RUNS


@app.command("sweep")
def sweep_budgets(
    table: Annotated[str, typer.Argument(help="paper/table")],
    epsilon: Annotated[str, typer.Option(help="privacy budgets, as in 1,3,10")] = "3.5,6,7.7,10",
    profile: Profile = "smoke",
    only: Only = None,
    methods: Methods = "",
    seeds: Seeds = "0",
    jobs: Jobs = 0,
    device: Device = "cpu",
    threads: Threads = 1,
    require_real: RequireReal = False,
    plugin: Plugins = None,
    fresh: Fresh = False,
    results: Results = RUNS,
    override: Override = None,
    ray: Ray = "",
    num_cpus: RayCpus = 0,
    num_gpus: RayGpus = None,
    ray_cache: RayCache = "",
    replaced: Replace = False,
) -> None:
    """A table's rows over privacy budgets, and without one: CSV, and a plot over epsilon."""
    from benchmarks.tables.selection import listed
    from benchmarks.tables.sweep import parse_epsilons, swept
    from federation.execution import DEFAULT

    selection = make_selection(
        profile, "paper", only or [], methods, seeds, device, threads, require_real, plugin or []
    )
    selection = replace(
        selection,
        overrides=parse_settings([table], override or [], selection.plugins),
        may_lose=replaced,
        execution=DEFAULT,  # as the private cells, with which those without a budget are compared
    )
    cluster = make_cluster(ray, num_cpus, num_gpus, ray_cache, device, threads)
    paper, spec = registry.find_table(table)
    derived, left_out = swept(paper, spec, selection, parse_epsilons(epsilon))
    wanted = (selection.only or {}).get("row")
    remarks = [
        f"left out {row.title}: {row.method} has no private form"
        for row in left_out
        if wanted is None or row.key in {*selection.add, *listed(wanted, ())}
    ]
    run_tables(
        [(paper, derived)],
        replace(selection, add=(), drop=()),
        jobs,
        fresh,
        results,
        cluster,
        remarks=remarks,
    )
