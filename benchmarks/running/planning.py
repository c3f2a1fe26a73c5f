"""Plans of several tables at once, and what is printed of them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from fedtables.benchmarks.running import hours
from fedtables.benchmarks.running.follow import Follower
from fedtables.benchmarks.running.hours import Device
from fedtables.benchmarks.running.machine import default_jobs
from fedtables.benchmarks.running.plan import Plan, make_plan, row_times, wall_of, within
from fedtables.benchmarks.running.progress import progress_bar
from fedtables.benchmarks.running.trial import try_settings
from fedtables.benchmarks.tables import bandwidth, registry
from fedtables.benchmarks.tables.cells import Cell
from fedtables.benchmarks.tables.expansion import UNREAD, expand, unread
from fedtables.benchmarks.tables.selection import Selection
from fedtables.benchmarks.tables.spec import ON_CUDA
from fedtables.results import published


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
    try_settings(every, selection)
    for setting in unread(every, selection.overrides):
        console.print(f"--set {escape(setting)}: {UNREAD}", soft_wrap=True)
    return cells


def make_plans(
    cells: Mapping[str, Sequence[Cell]], console: Console, follower: Follower
) -> dict[str, Plan]:
    """The plan of every table, of its cells; after a paper's tables their sum, if there are
    several, and in the end that of all. Sums count once what tables share.

    Raises SpecError for a cell that cannot be planned.
    """
    everything = Plan()
    papers = {name.partition("/")[0]: Plan() for name in cells}
    with progress_bar(console) as bar:
        for cell in bar.track([cell for own in cells.values() for cell in own]):
            bar.update(bar.task_ids[0], description=f"planning {escape(str(cell))}")
            follower.follow(cell)
    alone = {
        name: make_plan(own, follower, (papers[name.partition("/")[0]], everything))
        for name, own in cells.items()
    }
    plans: dict[str, Plan] = {}
    for paper, total in papers.items():
        own = [name for name in cells if name.partition("/")[0] == paper]
        plans |= {name: alone[name] for name in own}
        if len(own) > 1:
            plans[paper] = total
    return plans | {hours.SUITE: everything}


def _print_lines(
    console: Console,
    title: str,
    headings: Sequence[str],
    lines: Iterable[Sequence[str]],
    left: int = 1,
    bold: Callable[[str], bool] = lambda name: False,
) -> None:
    """A table of texts, of whose columns the first `left` stand on the left; `bold` says of which
    names.
    """
    drawn = RichTable(title=title, title_justify="left")
    for number, heading in enumerate(headings):
        drawn.add_column(heading, justify="left" if number < left else "right")
    for line in lines:
        drawn.add_row(*map(escape, line), style="bold" if bold(line[0]) else None)
    console.print(drawn)


def print_plan(
    console: Console,
    name: str,
    plan: Plan,
    cells: Sequence[Cell],
    gpus: Sequence[Device],
    here: Device,
    link: float | None,
) -> None:
    """What the cells of a table would do."""
    _, table = registry.find_table(name)
    profile = cells[0].profile
    console.print(f"[bold]{name}[/] {table.title}, profile {profile}: {plan.cells} cells")
    computed = plan.distinct
    stages = [
        (kind, str(needed), str(computed[kind]), str(needed - computed[kind]))
        for kind, needed in plan.needed.items()
    ]
    _print_lines(console, "Stages", ("stage", "needed", "computed", "shared"), stages)
    sizes = {method: (plan.bytes_up[method], plan.bytes_down[method]) for method in plan.bytes_up}
    sent = [
        (method, *(f"{size:,}" for size in both), *bandwidth.link_times(*both, link))
        for method, both in sizes.items()
    ]
    headings = ("method", "up", "down", *bandwidth.link_columns(link))
    _print_lines(console, "Bytes of one run (largest column)", headings, sent)
    if printed := bandwidth.beside_print(name, table, plan.sent):
        title = "Bandwidth of one run in GB, all clients and both ways"
        lines = [
            (row, column, f"{own:,.2f}", f"{other:,.2f}") for row, column, own, other in printed
        ]
        _print_lines(console, title, ("row", "column", "here", "in print"), lines, left=2)
    console.print(
        f"training samples: {plan.work.training_samples:,}; predictions:"
        f" {plan.work.predicted_samples:,}; {plan.work.flops:.3g} FLOPs"
    )
    if here.speed and plan.work.flops:
        console.print(
            f"estimate: {here.hours(plan):,.2f} {here.title}-hours on this machine, at"
            f" {here.speed:.1e} FLOP/s ({here.source});"
            f" memory of a process about {plan.memory.device / hours.GIB:.2f} GiB on a GPU and"
            f" {plan.memory.host / hours.GIB:.2f} GiB on its host, without the framework",
            soft_wrap=True,
        )
        for gpu in gpus:
            console.print(
                f"estimate: {gpu.hours(plan):,.2f} GPU-hours on one {gpu.title}, at"
                f" {gpu.speed:.1e} FLOP/s ({gpu.source})",
                soft_wrap=True,
            )
    for text in hours.too_large({name: plan}, gpus):
        console.print(f"{text} (its largest cell)", soft_wrap=True)
    for work, count in plan.unplanned.items():
        console.print(f"not planned: {count} cells: {work}", soft_wrap=True)
    for asked, label in plan.data.items():
        console.print(escape(f"data: {asked}: {label}"))
    for column, why in table.unmeasured:
        console.print(
            f"{published.format_column(dict(column))} is not measured: {why}", soft_wrap=True
        )
    if profile in ON_CUDA:
        _print_weights(console, cells)


def print_rows(
    console: Console,
    cells: Sequence[Cell],
    follower: Follower,
    here: Device,
    jobs: int,
    limit: float | None,
) -> None:
    """How long the rows of a table take on this machine, `jobs` cells side by side; with a `limit`
    in minutes, which rows fit it together.
    """
    jobs = jobs or default_jobs(hours.device_here(cells[0].profile))
    rows = row_times(cells, here.hours, follower)
    lines = []
    for row, time in rows.to_dict(orient="index").items():
        wall = max(time["seconds"] / jobs, time["longest"])
        passed = [hours.shown(seconds / 60) for seconds in (time["seconds"], wall)]
        source = "records" if time["recorded"] else "speed measured just now"
        known = ("", "", "not known") if math.isnan(time["seconds"]) else (*passed, source)
        lines.append((str(row), str(time["cells"]), *known))
    headings = ("row", "cells", f"of one {here.title}", f"with --jobs {jobs}", "by")
    title = "Minutes per row on this machine, each alone, with an empty cache"
    _print_lines(console, title, headings, lines)
    console.print(
        f"all rows together: {hours.shown(wall_of(rows, jobs) / 60)} minutes with"
        f" --jobs {jobs}; what rows share is computed once",
        soft_wrap=True,
    )
    if limit is not None:
        fit = within(rows, jobs, 60 * limit)
        named = f"--only row={','.join(fit)}" if fit else "no row"
        console.print(f"within {limit:g} minutes: {named}", soft_wrap=True, markup=False)


def _print_weights(console: Console, cells: Sequence[Cell]) -> None:
    """Which of the pre-trained networks that cells begin with are here."""
    from fedtables.models.weight_files import needed

    for file in dict.fromkeys(file for cell in cells for file in needed(dict(cell.config))):
        there = "present" if file.path.exists() else f"absent. {file.how_to_get}"
        console.print(f"weights: {file.name}: {there}", soft_wrap=True)


def print_sums(
    console: Console, plans: Mapping[str, Plan], profile: str, gpus: Sequence[Device], here: Device
) -> None:
    """The table of hours, with the sums over papers and over everything."""
    title = f"Together, profile {profile}; sums count once what tables share"
    headings = [*hours.headings(gpus), f"{here.title}-hours here"]
    lines = [[*row, hours.shown(here.hours(plans[row[0]]))] for row in hours.rows(plans, gpus)]
    _print_lines(console, title, headings, lines, bold=hours.is_sum)
    for text in hours.remarks(plans, gpus):
        console.print(text, soft_wrap=True)
    if here.speed:
        console.print(f"here: {here.speed:.1e} FLOP/s, measured just now", soft_wrap=True)
    if missing := plans[hours.SUITE].missing:
        console.print(
            f"data to get: {', '.join(sorted(missing))}; `fedtables data` says how",
            soft_wrap=True,
        )
