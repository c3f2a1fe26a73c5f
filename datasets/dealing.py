"""Partitions by the names of their kinds."""

from collections.abc import Callable
from typing import get_args

import numpy as np

from fedtables.datasets import partitions
from fedtables.datasets.partitions import PartitionError


def dealt(
    labels: np.ndarray,
    kind: str,
    clients: int,
    rng: Callable[..., np.random.Generator],
    *,
    alpha: float = 0.0,
    client_share: float = 0.0,
    duplicates: bool = False,
    groups: np.ndarray | None = None,
) -> list[np.ndarray]:
    """The indices of each of `clients` clients into the pool, whose labels (n,) are given.
    `rng(*names)` makes the generator of a named stream. `groups` (n,) says whose each sample is,
    such as a writer's, where anybody knows.

    Under DLAD's kinds (section V-A) every client draws from a stream of its own, so that client k
    holds the same samples however many others there are; the paper's tables show the same of its
    clients. Without duplicates no sample is dealt twice. Raises PartitionError for a partition that
    cannot exist.
    """
    if kind not in (known := get_args(partitions.OfClasses)):
        raise PartitionError(
            f"samples with a class each are not divided by {kind}; use {', '.join(known)}"
        )
    if kind == "by-group":
        return partitions.by_group(require_groups(groups), clients, rng("clients"))
    if kind == "dirichlet-fedkd":
        return partitions.dirichlet_fedkd(labels, clients, alpha, rng("clients"))
    if kind in ("dirichlet-feddf", "dirichlet-feddf-released"):
        released = kind.endswith("released")
        return partitions.dirichlet_feddf(labels, clients, alpha, rng("clients"), released=released)
    probabilities = partitions.class_set_probabilities(kind, clients)
    if labels.max() >= probabilities.shape[1]:
        raise PartitionError(
            f"{kind} is for ten classes, the data have at least {labels.max() + 1}"
        )
    size = round(client_share * len(labels))
    if size < 1:
        raise PartitionError(
            f"a pool of {len(labels)} samples leaves none for a client; raise"
            " partition.client_share"
        )
    if not duplicates:
        return partitions.deal_by_class(labels, probabilities, size, rng("clients"))
    return [
        partitions.draw_by_class(labels, p, size, rng("client", k))
        for k, p in enumerate(probabilities)
    ]


def require_groups(groups: np.ndarray | None) -> np.ndarray:
    """The groups, (n,). Raises PartitionError if nobody says whose samples are."""
    if groups is None:
        raise PartitionError(
            "by-group needs a data set that says whose each sample is, such as femnist or"
            " digits-writers"
        )
    return groups
