"""`partition`: who holds what, described and drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from benchmarks.commands.app import app, console
from benchmarks.commands.asked import choice
from results.command_line import NUMBER, WHOLE, number, path, whole
from results.files import RUNS

KINDS = ("class-sets", "dirichlet-fedkd", "dirichlet-feddf", "dirichlet-feddf-released")


@app.command("partition")
def describe_partition(
    dataset: Annotated[str, typer.Option(help="data set")] = "mnist",
    clients: Annotated[
        int, typer.Option(parser=whole(1, 1_000_000), metavar=WHOLE, help="number of clients")
    ] = 10,
    kind: Annotated[
        str,
        typer.Option(
            help=(
                "class-sets (iid, niid1, niid2, niid3), dirichlet-fedkd, dirichlet-feddf or"
                " dirichlet-feddf-released"
            )
        ),
    ] = KINDS[0],
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
    from benchmarks.publish.partition import draw_partition

    choice("--kind", kind, KINDS)
    for file in draw_partition(dataset, clients, kind, alpha, seed, results):
        console.print(f"wrote {escape(str(file))}", soft_wrap=True)
