"""Plans of several tables at once, and what is printed of them."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from benchmarks.running import hours, minutes
from benchmarks.running.follow import Follower
from benchmarks.running.gpus import GPU
from benchmarks.running.machine import default_jobs
from benchmarks.running.plan import Plan, make_plan
from benchmarks.running.progress import progress_bar
from benchmarks.running.speed import training_speed
from benchmarks.running.trial import try_settings
from benchmarks.tables import bandwidth, registry
from benchmarks.tables.cells import Cell
from benchmarks.tables.expansion import UNREAD, expand, unread
from benchmarks.tables.selection import Selection
from benchmarks.tables.spec import ON_CUDA
from results import published

PATIENCE = 2.0
"""Seconds of planning before a bar appears."""


def cells_of(
    names: Sequence[str], selection: Selection, console: Console
) -> dict[str, Sequence[Cell]]:
    """The cells of every table. Raises SpecError for a selection that fits nothing, or settings
    that a cell cannot have.
    """
    tables = {name: registry.find_table(name) for name in names}
    cells: dict[str, Sequence[Cell]] = {
        name: expand(*table, selection) for name, table in tables.items()
    }
    every = [cell for several in cells.values() for cell in several]
    try_settings(list(tables.values()), every, selection)
    for setting in unread(every, selection.overrides):
        console.print(f"--set {escape(setting)}: {UNREAD}", soft_wrap=True)
    return cells


def make_plans(cells: Mapping[str, Sequence[Cell]], console: Console) -> dict[str, Plan]:
    """The plan of every table, of its cells; after a paper's tables their sum, if there are
    several, and in the end that of all. Sums count once what tables share.

    Raises SpecError for a cell that cannot be planned.
    """
    follower, everything = Follower(), Plan()
    papers = {name.partition("/")[0]: Plan() for name in cells}
    with _Progress(console, sum(map(len, cells.values()))) as progress:
        alone = {
            name: make_plan(
                several,
                follower,
                progress.planning,
                sums=(papers[name.partition("/")[0]], everything),
            )
            for name, several in cells.items()
        }
    plans: dict[str, Plan] = {}
    for paper, total in papers.items():
        own = [name for name in cells if name.partition("/")[0] == paper]
        plans |= {name: alone[name] for name in own}
        if len(own) > 1:
            plans[paper] = total
    return plans | {hours.SUITE: everything}


class _Progress:
    """A bar over cells, once planning takes longer than `PATIENCE` seconds."""

    def __init__(self, console: Console, total: int):
        self._bar = progress_bar(console)
        self._task = self._bar.add_task("planning", total=total)
        self._begun = time.monotonic()
        self._done = -1

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.stop()

    def planning(self, cell: Cell) -> None:
        """The next cell begins."""
        self._done += 1
        shown = f"planning {escape(str(cell))}"
        self._bar.update(self._task, completed=self._done, description=shown)
        if not self._bar.live.is_started and time.monotonic() - self._begun > PATIENCE:
            self._bar.start()


@dataclass(frozen=True)
class SpeedHere:
    """How fast this machine trains."""

    device: str
    """`GPU` or `core`."""
    speed: float
    """FLOP/s; 0 where there is nothing to train."""

    @functools.cached_property
    def images(self) -> float:
        """Images of the standard load that a core trains in a second (`minutes.STANDARD`)."""
        return training_speed(minutes.STANDARD, "cpu").samples

    def hours(self, plan: Plan) -> float:
        """Hours of the device."""
        return plan.hours(self.speed) if self.speed else 0.0


def speed_here(plan: Plan) -> SpeedHere:
    """The speed of this machine, measured on the network of most of a plan's work."""
    device, name = ("cuda", "GPU") if torch.cuda.is_available() else ("cpu", "core")
    return SpeedHere(name, plan.measured_speed(device))


def print_plan(
    console: Console,
    name: str,
    plan: Plan,
    cells: Sequence[Cell],
    gpus: Sequence[GPU],
    here: SpeedHere,
    link: float | None,
) -> None:
    """What the cells of a table would do."""
    _, table = registry.find_table(name)
    profile = cells[0].profile
    console.print(f"[bold]{name}[/] {table.title}, profile {profile}: {plan.cells} cells")
    stages = RichTable(
        "stage", "asked for", "computed", "shared", title="Stages", title_justify="left"
    )
    for kind, needed in plan.needed.items():
        stages.add_row(
            kind, str(needed), str(plan.distinct[kind]), str(needed - plan.distinct[kind])
        )
    console.print(stages)
    wire = RichTable(
        "method",
        "up",
        "down",
        *bandwidth.link_columns(link),
        title="Bytes of one run (largest column)",
        title_justify="left",
    )
    for method in plan.bytes_up:
        up, down = plan.bytes_up[method], plan.bytes_down[method]
        wire.add_row(escape(method), f"{up:,}", f"{down:,}", *bandwidth.link_times(up, down, link))
    console.print(wire)
    _print_bandwidth(console, bandwidth.beside_print(name, table, plan.sent))
    console.print(
        f"training samples: {plan.work.training_samples:,}; predictions:"
        f" {plan.work.predicted_samples:,}; {plan.work.flops:.3g} FLOPs"
    )
    if here.speed and plan.work.flops:
        console.print(
            f"estimate: {here.hours(plan):,.2f} {here.device}-hours on this machine, at"
            f" {here.speed:.1e} FLOP/s (measured just now, with the network of most work);"
            f" peak memory about {plan.peak_bytes / hours.GIB:.2f} GiB per process, beside the"
            " framework",
            soft_wrap=True,
        )
        for gpu in gpus:
            console.print(
                f"estimate: {gpu.hours(plan):,.2f} GPU-hours on one {gpu.title}, at"
                f" {gpu.speed:.1e} FLOP/s ({gpu.source})",
                soft_wrap=True,
            )
    for text in hours.too_large({name: plan}, gpus):
        console.print(f"{text} (the largest of its cells)", soft_wrap=True)
    for work, count in plan.unplanned.items():
        console.print(f"not planned, cells: {count}: {work}", soft_wrap=True)
    for asked, label in plan.data.items():
        console.print(escape(f"data: {asked}: {label}"))
    for column, why in table.unmeasured:
        console.print(
            f"{published.format_column(dict(column))} is not measured: {why}", soft_wrap=True
        )
    if profile in ON_CUDA:
        _print_weights(console, cells)


def _print_bandwidth(console: Console, lines: Sequence[tuple[str, str, float, float]]) -> None:
    """Bandwidth of one run beside print, where print has it."""
    if not lines:
        return
    drawn = RichTable(title="Bandwidth of one run in GB, all clients and both ways")
    for number, heading in enumerate(("row", "column", "here", "in print")):
        drawn.add_column(heading, justify="right" if number > 1 else "left")
    for row, column, here, printed in lines:
        drawn.add_row(row, column, f"{here:,.2f}", f"{printed:,.2f}")
    console.print(drawn)


def print_rows(
    console: Console,
    cells: Sequence[Cell],
    here: SpeedHere,
    jobs: int,
    limit: float | None,
) -> None:
    """How long the rows of a table take on this machine's cores, `jobs` cells side by side; with a
    `limit` in minutes, which rows fit it together.
    """
    jobs = jobs or default_jobs("cpu")
    rows = minutes.row_times(cells, here.speed, lambda: here.images)
    drawn = RichTable(
        title="Minutes a row here, each alone, with nothing cached", title_justify="left"
    )
    for number, heading in enumerate(("row", "cells", "of one core", f"with --jobs {jobs}", "by")):
        drawn.add_column(heading, justify="right" if 0 < number < 4 else "left")
    for row in rows:
        passed = [hours.shown(seconds / 60) for seconds in (row.seconds, row.wall(jobs))]
        source = "records" if row.recorded else "speed measured just now"
        drawn.add_row(
            escape(row.row),
            str(row.cells),
            *(passed if row.known else ("", "")),
            source if row.known else "not known",
        )
    console.print(drawn)
    console.print(
        f"all rows together: {hours.shown(minutes.wall_of(rows, jobs) / 60)} minutes with"
        f" --jobs {jobs}; what rows share is computed once",
        soft_wrap=True,
    )
    if limit is not None:
        fit = minutes.within(rows, jobs, 60 * limit)
        named = f"--only row={','.join(row.row for row in fit)}" if fit else "no row"
        console.print(
            f"within {limit:g} minutes: {named}",
            soft_wrap=True,
            markup=False,
        )


def _print_weights(console: Console, cells: Sequence[Cell]) -> None:
    """Which of the pre-trained networks that cells begin with are here."""
    from models.networks.imagenet import IMAGENET

    configs = [dict(cell.config) for cell in cells]
    named = {
        str(value)
        for config in configs
        if config.get("network.pretrained") == "imagenet"
        for entry, value in config.items()
        if entry.startswith("network.")
    }
    for network, file in IMAGENET.items():
        if network in named:
            there = file.path.exists()
            console.print(
                f"weights: {network}:"
                f" {'present' if there else f'absent; put {file.url} at {file.path}'}"
            )


def print_sums(
    console: Console,
    plans: Mapping[str, Plan],
    profile: str,
    gpus: Sequence[GPU],
    here: SpeedHere,
) -> None:
    """The table of hours, with the sums over papers and over everything."""
    drawn = RichTable(
        title=f"Together, profile {profile}; sums count once what tables share",
        title_justify="left",
    )
    for number, heading in enumerate([*hours.headings(gpus), f"{here.device}-hours here"]):
        drawn.add_column(heading, justify="right" if number else "left")
    for row in hours.rows(plans, gpus):
        plan = plans[row[0]]
        style = "bold" if hours.is_sum(row[0]) else None
        drawn.add_row(*row, hours.shown(here.hours(plan)), style=style)
    console.print(drawn)
    everything = plans[hours.SUITE]
    for gpu in gpus:
        console.print(f"{gpu.title}: {gpu.speed:.1e} FLOP/s, {gpu.source}", soft_wrap=True)
    for text in hours.too_large(plans, gpus):
        console.print(text, soft_wrap=True)
    if here.speed:
        console.print(f"here: {here.speed:.1e} FLOP/s, measured just now", soft_wrap=True)
    for work, cells in everything.unplanned.items():
        console.print(f"not planned, cells: {cells}: {work}", soft_wrap=True)
    if everything.missing:
        console.print(
            f"data to get: {', '.join(sorted(everything.missing))}; `python -m benchmarks data`"
            " says how",
            soft_wrap=True,
        )
