"""Partitions, described and drawn."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fedtables.benchmarks.scenarios.configuration import PartitionSettings
from fedtables.benchmarks.scenarios.images import divide
from fedtables.benchmarks.scenarios.sites import official_labels
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.datasets import catalogue, partitions
from fedtables.federation.seeds import Seeds
from fedtables.reports.drawing import plots_clients
from fedtables.reports.drawing.figures import Texts
from fedtables.results.store import write_csv


def draw_partition(
    dataset: str,
    clients: int,
    kinds: Sequence[partitions.Kind],
    alpha: float,
    seed: int,
    results: Path,
) -> list[Path]:
    """CSV and picture of partitions: of sets of classes a client draws half the pool, a fifth of
    the training split; Dirichlet ones divide the whole split.

    Raises DataError for impossible ones, SpecError for an alpha that is not positive.
    """
    if alpha <= 0:
        raise SpecError(f"--alpha must be above 0, not {alpha}")
    used = catalogue.resolve(dataset)
    labels, classes = official_labels(used), catalogue.source(used.used).classes
    counts: dict[str, np.ndarray] = {}
    for name in kinds:
        public = 0.8 if name in partitions.CLASS_SETS else 0.0
        how = PartitionSettings(name, clients, alpha, client_share=0.5, public_share=public)
        parts = divide(how, labels, Seeds(partition=seed)).clients
        counts[name] = partitions.label_counts(labels["train"], parts, classes)
    by_alpha = "" if partitions.CLASS_SETS.keys() >= set(kinds) else f"-alpha{alpha:g}"
    stem = f"{dataset}-{'-'.join(kinds)}-{clients}{by_alpha}-seed{seed}"
    lines = [
        {"partition": name, "client": str(client), "class": str(label), "samples": str(int(n))}
        for name, matrix in counts.items()
        for client, row in enumerate(matrix)
        for label, n in enumerate(row)
    ]
    csv, png = results / "partitions" / f"{stem}.csv", results / "partitions" / f"{stem}.png"
    write_csv(csv, lines, ("partition", "client", "class", "samples"))
    plots_clients.partition_plot(counts, png, Texts(f"{used.label}, {clients} clients"))
    return [csv, png]
