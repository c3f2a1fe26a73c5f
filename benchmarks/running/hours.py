"""The table of hours: what tables, papers and the suite cost, as `plan` counts it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.running.devices import Device
from benchmarks.running.plan import Plan

GB, GIB = 10**9, 2**30
SUITE = "all"
"""The key of the sum over everything."""


def headings(gpus: Sequence[Device]) -> list[str]:
    """The columns of `rows`."""
    return [
        "table",
        "cells",
        "stages",
        "EFLOPs",
        *(f"hours on {gpu.title}" for gpu in gpus),
        "GB sent",
        "GiB of memory",
    ]


def rows(plans: Mapping[str, Plan], gpus: Sequence[Device]) -> Iterator[list[str]]:
    """A line for every plan: tables `paper/table`, sums of papers `paper` and of `SUITE`."""
    for name, plan in plans.items():
        yield [
            name,
            f"{plan.cells:,}",
            f"{plan.distinct.total():,}",
            shown(plan.work.flops / 1e18),
            *(shown(gpu.hours(plan)) for gpu in gpus),
            shown(plan.bytes_sent / GB),
            f"{plan.peak_bytes / GIB:,.2f}",
        ]


def shown(number: float) -> str:
    """A number in three digits, or all of those before the point."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def too_large(plans: Mapping[str, Plan], gpus: Sequence[Device]) -> Iterator[str]:
    """What is to be said of each GPU whose memory is too small for some tables' largest cells."""
    for gpu in gpus:
        tables = [name for name in plans if not is_sum(name) and not gpu.holds(plans[name])]
        if tables:
            yield f"More memory than one {gpu.title} has: {', '.join(tables)}"


def is_sum(name: str) -> bool:
    """Whether a line is a sum over tables."""
    return "/" not in name


def markdown(
    plans: Mapping[str, Plan], asked: Sequence[str], profile: str, gpus: Sequence[Device]
) -> str:
    """A page with the table of hours of the tables and papers that were `asked` for, the source of
    each GPU's speed, and what is not in it.
    """
    command = " ".join(["python -m benchmarks plan", *asked, "--profile", profile])
    lines = [headings(gpus), ["---", *["---:"] * (len(headings(gpus)) - 1)]]
    for row in rows(plans, gpus):
        lines.append([f"**{text}**" for text in row] if is_sum(row[0]) else row)
    speeds = [f"- {gpu.title}: {gpu.speed:.2g} FLOP/s, {gpu.source}." for gpu in gpus]
    attacks = [
        f"- not planned, cells: {cells}: {work}." for work, cells in plans[SUITE].unplanned.items()
    ]
    paragraphs = [
        "# Hours",
        f"What tables take under `--profile {profile}`, as `{command} --markdown FILE` counts it"
        " without running a cell, one seed for each cell. A"
        " table's line is what it takes alone; the sums, bold, count once what tables share. Hours"
        " are FLOPs by the speed of one GPU in fp32, and can be two to three times too long"
        " ([performance](performance.md#on-cuda)). Bytes are those of all runs, both ways; memory"
        " is the largest of a process, its samples among it, beside the framework.",
        "\n".join(f"| {' | '.join(line)} |" for line in lines),
        "\n".join([*speeds, *(f"- {text}." for text in too_large(plans, gpus)), *attacks]),
    ]
    return "\n\n".join(paragraphs) + "\n"
