"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.papers import FIRST
from benchmarks.tables import registry
from benchmarks.tables.spec import PROFILES, PROTOCOLS
from results.command_line import NUMBER, WHOLE, number, path, whole


def _tables_like(begun: str) -> list[str]:
    known = [*registry.papers(), *registry.all_tables()]
    return [name for name in known if name.startswith(begun)]


Tables = Annotated[
    list[str] | None,
    typer.Argument(
        help=f"paper/table, for example {FIRST}; or a paper for all of its tables",
        autocompletion=_tables_like,
    ),
]
Profile = Annotated[
    str,
    typer.Option(
        help=(
            "smoke (embedded data, seconds to minutes), cpu (real data, reduced), gpu (the paper's"
            " networks, schedules cut to half an hour, CUDA), paper (full scale, CUDA)"
        ),
        autocompletion=lambda: PROFILES,
    ),
]
Protocol = Annotated[
    str,
    typer.Option(
        help="paper, or released: what the authors' code does where it departs",
        autocompletion=lambda: PROTOCOLS,
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE", help="only these columns or rows; values may be a,b; repeatable"
    ),
]
Override = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="SETTING=VALUE",
        help="a setting of your own; the table's files are named apart; repeatable",
    ),
]
Plain = Annotated[
    bool,
    typer.Option(
        "--plain",
        help="pictures without title and provenance, for a paper whose caption has both",
    ),
]
Methods = Annotated[str, typer.Option(metavar="+NAME,-NAME", help="add methods as rows, drop rows")]
Seeds = Annotated[
    str, typer.Option(help="comma-separated; tables print mean and standard deviation over them")
]
Device = Annotated[
    str, typer.Option(help="cpu, cuda, cuda:1, mps; default: cuda for gpu and paper, else cpu")
]
Threads = Annotated[
    int,
    typer.Option(
        parser=whole(1, 1024),
        metavar=WHOLE,
        help="threads per worker; two workers of one thread beat one of two",
    ),
]
Precision = Annotated[
    str,
    typer.Option(
        help="of training: fp32, tf32 (CUDA), bf16 (autocast); default: bf16 for gpu, else fp32;"
        " files are named apart"
    ),
]
Compile = Annotated[
    str,
    typer.Option(
        "--compile",
        help="torch.compile for training: off, default, reduce-overhead (CUDA graphs); or graphs:"
        " whole steps as CUDA graphs, not compiled; default: graphs for gpu, else off",
    ),
]
Stacked = Annotated[
    int,
    typer.Option(
        parser=whole(1),
        metavar=WHOLE,
        help="clients trained side by side, a step of each in turn; for GPUs and small networks,"
        " with --compile graphs",
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        parser=whole(), metavar=WHOLE, help="worker processes; 0: one per core, one on a GPU"
    ),
]
Minutes = Annotated[
    float,
    typer.Option(
        parser=number(),
        metavar="N",
        help="stop after so long, before a cluster's limit does; the same command goes on",
    ),
]
LogTo = Annotated[
    str,
    typer.Option(
        metavar="tensorboard",
        help="keep losses, metrics, bytes and epsilon as they grow, in RESULTS/tensorboard",
    ),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="compute everything again, cached or not")]
Results = Annotated[
    Path, typer.Option(parser=path, metavar="PATH", help="folder for CSV, plots and records")
]
Replace = Annotated[
    bool,
    typer.Option(
        "--replace",
        help="let a table's files lose cells that this command neither computes nor finds",
    ),
]
Plugins = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        parser=path,
        metavar="PATH",
        help="a file or package with one more method; repeatable",
    ),
]
Ray = Annotated[
    str,
    typer.Option(
        "--ray",
        metavar="ADDRESS",
        help="run cells as Ray tasks: local, auto, or host:port of a cluster",
    ),
]
RayCpus = Annotated[
    float,
    typer.Option(
        "--num-cpus",
        parser=number(),
        metavar=NUMBER,
        help="with --ray: processors of a cell; 0: as many as --threads",
    ),
]
RayGpus = Annotated[
    float | None,
    typer.Option(
        "--num-gpus",
        parser=number(),
        metavar=NUMBER,
        help="with --ray: GPUs of a cell, 0.25 for four on one; default: 1 on cuda",
    ),
]
RayCache = Annotated[
    str,
    typer.Option(
        "--ray-cache",
        help=(
            "with --ray: fetch (stages travel through Ray) or shared (all nodes see"
            " FEDTABLES_CACHE)"
        ),
    ),
]
RequireReal = Annotated[bool, typer.Option("--require-real", help="refuse stand-in data")]
