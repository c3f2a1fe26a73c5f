"""Partitions, described and drawn."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedtables.benchmarks.scenarios.configuration import PartitionSettings
from fedtables.benchmarks.scenarios.images import Division, divide
from fedtables.benchmarks.scenarios.sites import official_groups, official_labels
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.datasets import catalogue, partitions
from fedtables.datasets.catalogue import ResolvedData
from fedtables.federation.seeds import Seeds
from fedtables.reports.drawing import plots_clients
from fedtables.reports.drawing.figures import Texts
from fedtables.results.files import write_atomic
from fedtables.results.store import write_csv


@dataclass(frozen=True)
class Divided:
    """The training split of a data set, divided in one or several ways."""

    asked: str
    data: ResolvedData
    clients: int
    alpha: float
    seed: int
    by_kind: Mapping[str, Division]


def divided(
    dataset: str, clients: int, kinds: Sequence[partitions.Kind], alpha: float, seed: int
) -> Divided:
    """Partitions as the runner makes them: of sets of classes a client draws half the pool, a fifth
    of the training split; other ones divide the whole split.

    Raises DataError for impossible ones, SpecError for an alpha that is not positive.
    """
    if alpha <= 0:
        raise SpecError(f"--alpha must be above 0, not {alpha}")
    data = catalogue.resolve(dataset)
    labels, found = official_labels(data), dict[str, Division]()
    owners = official_groups(data, "train")
    for name in kinds:
        public = 0.8 if name in partitions.CLASS_SETS else 0.0
        how = PartitionSettings(name, clients, alpha, client_share=0.5, public_share=public)
        found[name] = divide(how, labels, Seeds(partition=seed), owners=owners)
    return Divided(dataset, data, clients, alpha, seed, found)


def draw_partition(found: Divided, results: Path) -> list[Path]:
    """CSV and picture of partitions: how many samples of each class a client holds."""
    labels, classes = official_labels(found.data), catalogue.source(found.data.used).classes
    counts = {
        name: partitions.label_counts(labels["train"], division.clients, classes)
        for name, division in found.by_kind.items()
    }
    with_alpha = any(kind.startswith("dirichlet") for kind in found.by_kind)
    by_alpha = f"-alpha{found.alpha:g}" if with_alpha else ""
    stem = f"{found.asked}-{'-'.join(counts)}-{found.clients}{by_alpha}-seed{found.seed}"
    lines = [
        {"partition": name, "client": str(client), "class": str(label), "samples": str(int(n))}
        for name, matrix in counts.items()
        for client, row in enumerate(matrix)
        for label, n in enumerate(row)
    ]
    csv, png = results / "partitions" / f"{stem}.csv", results / "partitions" / f"{stem}.png"
    write_csv(csv, lines, ("partition", "client", "class", "samples"))
    texts = Texts(f"{found.data.label}, {found.clients} clients")
    plots_clients.partition_plot(counts, png, texts)
    return [csv, png]


def write_indices(found: Divided, file: Path) -> Path:
    """Who holds what, as JSON: indices into the training split, by kind of each client and of what
    is held out as public, with the data set, its digest and the seed.
    """
    by_kind = {
        name: {
            "clients": [part.tolist() for part in division.clients],
            "public": division.public.tolist(),
        }
        for name, division in found.by_kind.items()
    }
    about = {"dataset": found.data.used, "digest": found.data.digest, "split": "train"}
    write_atomic(file, json.dumps({**about, "seed": found.seed, "partitions": by_kind}) + "\n")
    return file
