"""How a pool of samples is shared out among clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import numpy as np

from benchmarks.scenarios.configuration import PartitionSettings
from datasets import partitions


def limit(indices: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """A random subset of at most `most` indices, in order; all of them if `most` is 0."""
    if not most or len(indices) <= most:
        return indices
    return np.sort(rng.choice(indices, most, replace=False))


def client_parts(
    partition: PartitionSettings,
    clients: int,
    labels: np.ndarray,
    rng: Callable[..., np.random.Generator],
) -> list[np.ndarray]:
    """The indices of each of `clients` clients into the pool, whose labels are given, by the
    partition's kind.

    Under DLAD's kinds (section V-A) every client draws from a stream of its own, so that client k
    holds the same samples however many others there are; the paper's tables show the same of its
    clients. Without duplicates no sample is dealt twice.
    """
    kind, alpha = partition.kind, float(partition.alpha)
    if kind not in (known := get_args(partitions.OfClasses)):
        raise partitions.PartitionError(
            f"samples with a class each are not divided by {kind}; use {', '.join(known)}"
        )
    if kind == "dirichlet-fedkd":
        return partitions.dirichlet_fedkd(labels, clients, alpha, rng("clients"))
    if kind in ("dirichlet-feddf", "dirichlet-feddf-released"):
        released = kind.endswith("released")
        return partitions.dirichlet_feddf(labels, clients, alpha, rng("clients"), released=released)
    probabilities = partitions.class_set_probabilities(kind, clients)
    if labels.max() >= probabilities.shape[1]:
        raise partitions.PartitionError(
            f"{kind} is for ten classes, the data have at least {labels.max() + 1}"
        )
    size = round(float(partition.client_share) * len(labels))
    if size < 1:
        raise partitions.PartitionError(
            f"a pool of {len(labels)} samples leaves none for a client; raise"
            " partition.client_share"
        )
    if not partition.duplicates:
        return partitions.deal_by_class(labels, probabilities, size, rng("clients"))
    return [
        partitions.draw_by_class(labels, p, size, rng("client", k))
        for k, p in enumerate(probabilities)
    ]
