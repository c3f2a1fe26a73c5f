"""`partition`: who holds what, described and drawn."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

from rich.markup import escape

from fedtables.benchmarks.commands.app import console
from fedtables.benchmarks.tables.readers import choice
from fedtables.benchmarks.tables.request import Request, option, place, quantity, takes
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.results.command_line import number, whole
from fedtables.results.files import RUNS


@dataclass(frozen=True)
class Described:
    """Options of `partition`; the help texts say what each one means."""

    dataset: str = option("mnist", str, "data set")
    clients: int = quantity(10, whole(1, 1_000_000), "number of clients")
    kind: str = option(
        "iid,niid1,niid2,niid3",
        str,
        "kinds of partition, as a,b (values of partition.kind that need one class per sample)",
    )
    alpha: float = quantity(0.1, number(), "Dirichlet concentration")
    seed: int = quantity(0, whole(), "seed of the partition axis")
    results: Path = place(RUNS, "folder for the CSV and the picture")  # noqa: RUF009
    indices: Path | None = place(None, "JSON file for all sample indices", "FILE")  # noqa: RUF009


@takes("plugins")
@takes(of=Described)
def describe_partition(asked: Described, request: Request) -> None:
    """Describe partitions as CSV, and draw samples per client and class as a bubble plot."""
    from fedtables.benchmarks.reporting.partition import divided, draw_partition, write_indices
    from fedtables.datasets.partitions import Kind, OfClasses

    kinds: list[Kind] = [
        cast(Any, choice("--kind", name, get_args(Kind))) for name in asked.kind.split(",")
    ]
    for name in kinds:
        if name not in get_args(OfClasses):
            raise SpecError(
                f"--kind {name} is for samples without one class each, which this command does not"
                f" describe; use {', '.join(get_args(OfClasses))}"
            )
    found = divided(asked.dataset, asked.clients, kinds, asked.alpha, asked.seed)
    files = draw_partition(found, asked.results)
    if asked.indices is not None:
        files.append(write_indices(found, asked.indices))
    for file in files:
        console.print(f"wrote {escape(str(file))}", soft_wrap=True)
