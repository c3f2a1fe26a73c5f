"""`partition`: who holds what, described and drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer
from rich.markup import escape

from benchmarks.commands.app import app, console
from benchmarks.tables.request import choice
from benchmarks.tables.spec import SpecError
from results.command_line import NUMBER, WHOLE, number, path, whole
from results.files import RUNS


@app.command("partition")
def describe_partition(
    dataset: Annotated[str, typer.Option(help="data set")] = "mnist",
    clients: Annotated[
        int, typer.Option(parser=whole(1, 1_000_000), metavar=WHOLE, help="number of clients")
    ] = 10,
    kind: Annotated[
        str,
        typer.Option(help="values of partition.kind whose samples have a class each, as a,b"),
    ] = "iid,niid1,niid2,niid3",
    alpha: Annotated[
        float, typer.Option(parser=number(), metavar=NUMBER, help="Dirichlet concentration")
    ] = 0.1,
    seed: Annotated[
        int, typer.Option(parser=whole(), metavar=WHOLE, help="seed of the partition axis")
    ] = 0,
    results: Annotated[
        Path, typer.Option(parser=path, metavar="PATH", help="folder for the CSV and the picture")
    ] = RUNS,
) -> None:
    """Describe a partition as CSV, and draw it as a clients x classes bubble plot."""
    from benchmarks.reporting.partition import draw_partition
    from datasets.partitions import Kind, OfClasses

    kinds: list[Kind] = [
        cast(Any, choice("--kind", name, get_args(Kind))) for name in kind.split(",")
    ]
    for name in kinds:
        if name not in get_args(OfClasses):
            raise SpecError(
                f"--kind {name} divides no samples with a class each, which alone are described"
                f" here; use {', '.join(get_args(OfClasses))}"
            )
    for file in draw_partition(dataset, clients, kinds, alpha, seed, results):
        console.print(f"wrote {escape(str(file))}", soft_wrap=True)
