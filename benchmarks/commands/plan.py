"""`plan`: what a table would cost."""

from dataclasses import dataclass, fields, replace
from pathlib import Path

from rich.markup import escape

from fedtables.benchmarks.commands.app import console, errors
from fedtables.benchmarks.commands.asked import selected, table_names
from fedtables.benchmarks.commands.from_file import configured
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.readers import number_or_none, text
from fedtables.benchmarks.tables.request import Request, option, place, quantity, takes
from fedtables.benchmarks.tables.spec import SpecError, usual_device
from fedtables.results.cached import in_use
from fedtables.results.files import check_output, write_atomic


@dataclass(frozen=True)
class Shown:
    """Options of `plan`; the help texts say what each one means."""

    link: float | None = quantity(
        None,
        number_or_none,
        "add the transfer time of a run over a link of this speed",
        "--link",
        metavar="MBIT/S",
    )
    gpu: str = option(
        "h100,a100",
        text,
        "GPUs to estimate hours for (h200, h100, a100), or files of"
        " fedtables.benchmarks.speed.cuda",
        "--gpu",
        metavar="NAME,NAME",
    )
    limit: float | None = quantity(
        None,
        number_or_none,
        "name the rows that this machine computes within this time",
        "--within",
        metavar="MINUTES",
    )
    markdown: Path | None = place(None, "write the profile's table of hours into this page", "FILE")  # noqa: RUF009


@configured(disregards=fields(Request))
@takes("tables", "profile", "protocol", "only", "methods", "seeds", "settings", "plugins", "jobs")
@takes(of=Shown)
@in_use()
def plan_tables(shown: Shown, request: Request) -> None:
    """Estimate what tables cost before you run them: cells, FLOPs, bytes, memory and hours.

    It runs no cell. Without a table it plans the whole suite. Several tables get a sum. Where this
    machine has what the profile runs on, it adds the minutes of each row.
    """
    from fedtables.benchmarks.running import hours
    from fedtables.benchmarks.running.follow import Follower
    from fedtables.benchmarks.running.hours import find_gpus, this_machine
    from fedtables.benchmarks.running.planning import (
        cells_of,
        make_plans,
        print_plan,
        print_rows,
        print_sums,
    )

    tables, profile, protocol = list(request.tables), request.profile, request.protocol
    link, limit, markdown = shown.link, shown.limit, shown.markdown
    if link == 0:
        raise SpecError(f"--link must be above 0 Mbit/s, not {link:g}")
    runs_here = hours.device_here(profile) == usual_device(profile)
    if limit is not None and not (tables and runs_here):
        raise SpecError("--within needs a table, and a GPU or the profile smoke or cpu")
    if markdown is not None:
        check_output(markdown)
        page = hours.page_at(markdown)
    gpus = find_gpus(shown.gpu)
    names = table_names(tables or _papers(protocol), protocol)
    selection = selected(replace(request, device="cpu"), names)
    cells, follower = cells_of(names, selection, errors), Follower()
    plans = make_plans(cells, errors, follower)
    here = this_machine(plans[hours.SUITE], profile)
    for name in names if tables else ():
        print_plan(console, name, plans[name], cells[name], gpus, here, link)
        if runs_here:
            print_rows(console, cells[name], follower, here, request.jobs, limit)
    if len(names) > 1:
        print_sums(console, plans, profile, gpus, here)
    if markdown is not None:
        write_atomic(markdown, hours.placed(hours.markdown(plans, tables, profile, gpus), page))
        console.print(f"wrote {escape(str(markdown))}", soft_wrap=True)


def _papers(protocol: str) -> list[str]:
    """Every paper that has something under `protocol`."""
    return [
        key
        for key, paper in registry.papers().items()
        if paper.tables and (protocol != "released" or paper.released_code)
    ]
