"""From a resolved configuration to the parts that every federation has, whatever its data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.tables.spec import Scalar
from datasets import partitions
from federation.augmentation import Augmentation
from federation.method import Method
from federation.protection import Protection
from federation.training import TrainingPlan
from privacy.plan import RELEASED, PrivacyPlan

Config = Mapping[str, Scalar]


def limit(indices: np.ndarray, most: Scalar, rng: np.random.Generator) -> np.ndarray:
    """A random subset of at most `most` indices, in order; all of them if `most` is 0."""
    if not most or len(indices) <= int(most):
        return indices
    return np.sort(rng.choice(indices, int(most), replace=False))


def client_parts(
    config: Config, labels: np.ndarray, rng: Callable[..., np.random.Generator]
) -> list[np.ndarray]:
    """Each client's indices into the pool, whose labels are given, by the partition's kind.

    Under DLAD's kinds (section V-A) every client draws from a stream of its own, so that client k
    holds the same samples however many others there are; the paper's tables show the same of its
    clients.
    """
    kind, clients = str(config["partition.kind"]), int(config["partition.clients"])
    if kind == "dirichlet-fedkd":
        return partitions.dirichlet_fedkd(
            labels, clients, float(config["partition.alpha"]), rng("clients")
        )
    if kind in ("dirichlet-feddf", "dirichlet-feddf-released"):
        released = kind.endswith("released")
        return partitions.dirichlet_feddf(
            labels, clients, float(config["partition.alpha"]), rng("clients"), released=released
        )
    probabilities = partitions.dlad_class_probabilities(kind, clients)
    if labels.max() >= probabilities.shape[1]:
        raise partitions.PartitionError(
            f"DLAD's distributions are for ten classes, the data have at least {labels.max() + 1}"
        )
    size = round(float(config["partition.client_share"]) * len(labels))
    if size < 1:
        raise partitions.PartitionError(
            f"a pool of {len(labels)} samples leaves none for a client; raise"
            " partition.client_share"
        )
    return [
        partitions.draw_by_class(labels, p, size, rng("client", k))
        for k, p in enumerate(probabilities)
    ]


def roles(client_model: str, clients: int) -> list[str]:
    """Which kind of network each client has: `resnet+densenet` gives the first half ResNet, the
    rest DenseNet.
    """
    kinds = client_model.split("+")
    return [kinds[k * len(kinds) // clients] for k in range(clients)]


def training_plan(config: Config, prefix: str) -> TrainingPlan:
    """How the clients (`local`) or the server (`server`) train, by the settings that begin so."""
    names = TrainingPlan.__dataclass_fields__
    values: dict[str, Any] = {
        n: config[f"{prefix}.{n}"] for n in names if f"{prefix}.{n}" in config
    }
    return TrainingPlan(**values)


def common_parts(config: Config, method: type[Method]) -> dict[str, Any]:
    """What a federation has beside its data, networks and seeds; arguments of Federation.

    Raises ValueError if differential privacy is asked for in a form that the method does not have.
    """
    plan = privacy_plan(config)
    if plan is not None and plan.mechanism not in method.protections():
        raise ValueError(f"{method.__name__} has no private form under {plan.mechanism}")
    return {
        "local": training_plan(config, "local"),
        "server": training_plan(config, "server"),
        "augmentation": augmentation_of(config),
        "protection": (
            Protection(plan, method.protections()[plan.mechanism]) if plan is not None else None
        ),
        "pretrained": config["network.pretrained"] == "imagenet",
        "oracle_allowed": method.oracle,
    }


def privacy_plan(config: Config) -> PrivacyPlan | None:
    """How the configuration asks for differential privacy; None where it does not."""
    if config.get("privacy.dp") != "yes" or config["privacy.epsilon"] == math.inf:
        return None
    names = PrivacyPlan.__dataclass_fields__
    values: dict[str, Any] = {n: config[f"privacy.{n}"] for n in names if f"privacy.{n}" in config}
    if values["mechanism"] == RELEASED:  # its noise is given, and no budget could hold it
        values["epsilon"] = math.inf
    values["epsilon"] = float(values["epsilon"])  # 10 and 10.0 are one budget, with one noise
    return PrivacyPlan(**values)


def augmentation_of(config: Config) -> Augmentation | None:
    """How training images are changed; None if they are not."""
    names = Augmentation.__dataclass_fields__
    values: dict[str, Any] = {
        n: config[f"augmentation.{n}"] for n in names if f"augmentation.{n}" in config
    }
    how = Augmentation(**values)
    return None if how == Augmentation() else how
