"""`plan`: what a table would cost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table as RichTable

from benchmarks.commands.app import app, console
from benchmarks.commands.asked import make_selection, parse_settings, some_tables, table_names
from benchmarks.commands.options import (
    Methods,
    Only,
    Override,
    Plugins,
    Profile,
    Protocol,
    Seeds,
    Tables,
)
from benchmarks.tables import bandwidth, registry
from benchmarks.tables.spec import SpecError
from results import published

if TYPE_CHECKING:
    from benchmarks.tables.selection import Selection


@app.command("plan")
def plan_tables(
    tables: Tables = None,
    profile: Profile = "paper",
    protocol: Protocol = "paper",
    only: Only = None,
    methods: Methods = "",
    seeds: Seeds = "0",
    plugin: Plugins = None,
    override: Override = None,
    link: Annotated[
        float | None,
        typer.Option(
            "--link",
            metavar="MBIT/S",
            help="adds how long a run's bytes take on one link of this speed",
        ),
    ] = None,
) -> None:
    """What a table costs, before running it: cells, stages, data, FLOPs, bytes, memory, hours.

    Of some tables without a runner it has the bytes, from first principles.
    """
    if link is not None and link <= 0:
        raise SpecError(f"--link takes Mbit/s above 0, not {link:g}")
    names = table_names(some_tables(tables), protocol, planned=True)
    runnable = [name for name in names if registry.all_tables().get(name) is not None]
    selection = make_selection(
        profile, protocol, only or [], methods, seeds, "cpu", 1, False, plugin or []
    )
    if runnable:
        selection = replace(
            selection, overrides=parse_settings(runnable, override or [], selection.plugins)
        )
    elif override or methods:
        raise SpecError(
            f"--set and --methods change runs, and {', '.join(names)} has no runner yet"
        )
    for name in names:
        if name in runnable:
            _plan_runs(name, selection, link)
        else:
            console.print(
                f"{name} has no runner yet; its bytes at the paper's scale can be computed all the"
                " same",
                soft_wrap=True,
            )
        accounts = bandwidth.accounts(name)
        if accounts:
            bandwidth.show(
                console,
                name,
                accounts if name in runnable else bandwidth.chosen(accounts, selection.only or {}),
                link,
            )


def _plan_runs(name: str, selection: Selection, link: float | None) -> None:
    """Print what the cells of a table would do."""
    import torch

    from benchmarks.running.plan import GPU, GPU_SPEED, make_plan
    from benchmarks.tables.cells import expand

    profile = selection.profile
    paper, table = registry.find_table(name)
    cells = expand(paper, table, selection)
    plan = make_plan(cells)
    console.print(f"[bold]{name}[/] {table.title}, profile {profile}: {plan.cells} cells")
    stages = RichTable(
        "stage", "asked for", "computed", "shared", title="Stages", title_justify="left"
    )
    for kind, needed in plan.needed.items():
        stages.add_row(
            kind, str(needed), str(plan.distinct[kind]), str(needed - plan.distinct[kind])
        )
    console.print(stages)
    times = bandwidth.link_columns(link)
    wire = RichTable(
        "method",
        "up",
        "down",
        *times,
        title="Bytes of one run (largest column)",
        title_justify="left",
    )
    for method in plan.bytes_up:
        up, down = plan.bytes_up[method], plan.bytes_down[method]
        wire.add_row(method, f"{up:,}", f"{down:,}", *bandwidth.link_times(up, down, link))
    console.print(wire)
    console.print(
        f"training samples: {plan.meter.training_samples:,}; predictions:"
        f" {plan.meter.predicted_samples:,}; {plan.meter.flops:.3g} FLOPs"
    )
    device, what = ("cuda", "GPU") if torch.cuda.is_available() else ("cpu", "core")
    if speed := plan.measured_speed(device):
        console.print(
            f"estimate: {plan.hours(speed):,.2f} {what}-hours on this machine, at"
            f" {speed:.1e} FLOP/s (measured just now, with the clients' network);"
            f" {plan.hours(GPU_SPEED):,.2f} GPU-hours on one {GPU}, at {GPU_SPEED:.1e} FLOP/s"
            " (measured there, docs/performance.md); peak memory about"
            f" {plan.meter.peak_bytes / 2**30:.2f} GiB per process, beside the framework",
            soft_wrap=True,
        )
    for asked, label in plan.data.items():
        console.print(f"data: {asked}: {label}")
    for column, why in table.unmeasured:
        console.print(
            f"{published.format_column(dict(column))} is not measured: {why}", soft_wrap=True
        )
    pretrained = [
        dict(cell.config)
        for cell in cells
        if dict(cell.config).get("network.pretrained") == "imagenet"
    ]
    if profile == "paper" and pretrained:
        from models.networks.imagenet import IMAGENET, weight_path

        named = {
            str(value)
            for config in pretrained
            for entry, value in config.items()
            if entry.startswith("network.")
        }
        for network, file in (
            (network, file) for network, file in IMAGENET.items() if network in named
        ):
            there = weight_path(network).exists()
            console.print(
                f"weights: {network}:"
                f" {'present' if there else f'absent; put {file.url} at {weight_path(network)}'}"
            )
