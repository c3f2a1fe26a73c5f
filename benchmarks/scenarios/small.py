"""The small federations on which the contract judges methods, of data that come with the suite:
real digits, and generated scenes or slices for methods of such tasks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from benchmarks.scenarios.scenario import DataSets
from benchmarks.tables.spec import PLANS, Scalar
from datasets import catalogue
from federation.method import Method

CONFIG: Mapping[str, Scalar] = {
    "data.name": "digits",
    "data.image_size": 8,
    "partition.kind": "niid2",
    "partition.clients": 5,
    "partition.public_share": 0.77,
    "partition.public_split": "",
    "partition.client_share": 0.5,
    "partition.public_limit": 200,
    "partition.pool_limit": 0,
    "partition.test_limit": 0,
    "partition.validation_share": 0.1,
    "partition.probe_share": 0.1,
    "network.client": "cnn",
    "network.server": "cnn",
    "network.cnn": "cnn-small",
    "network.pretrained": "none",
    "local.epochs": 6,
    "local.batch_size": 16,
    "local.lr": 5e-3,
    "server.epochs": 15,
    "server.batch_size": 16,
    "server.lr": 5e-3,
    "augmentation.rotation": 5,
    "augmentation.shift": 0.0,
    "augmentation.channel_shift": 0.0,
    "augmentation.horizontal_flip": False,
    "privacy.dp": "yes",
    "privacy.epsilon": math.inf,
}
"""Five clients with some 130 real digits each, 144 labelled and 200 public ones at the server; a
fit takes about two seconds."""
DENSE: Mapping[str, Scalar] = {
    **CONFIG,
    "data.name": "scenes",
    "data.task": "segmentation",
    "data.image_size": 16,
    "partition.kind": "dirichlet-fedkd",
    "partition.alpha": 10,
    "partition.clients": 2,
    "partition.public_share": 0.01,
    "partition.pool_limit": 100,
    "partition.test_limit": 100,
    "partition.probe_share": 0.01,
    "partition.teachers": "segment_semantic",
    "augmentation.rotation": 0,
}
"""Two clients with some 45 generated scenes of 16 x 16 pixels each, whose every pixel is wall, floor
or one of six kinds of blob; a fit takes a few seconds."""

SITES: Mapping[str, Scalar] = {
    **CONFIG,
    "data.name": "phantom-brains-b-t1+phantom-brains-f-t1",
    "data.task": "reconstruction",
    "data.image_size": 32,
    "public.name": "",
    "partition.kind": "by-site",
    "partition.clients": 2,
    "partition.public_limit": 0,
    "partition.pool_limit": 24,
    "network.client": "unet-8-in",
    "network.server": "unet-8-in",
    "augmentation.rotation": 0,
}
"""Two clients with 24 generated slices of heads each; a fit takes a few seconds."""

LEAST: Mapping[str, float] = {"accuracy": 0.25, "miou": 0.11, "ssim": 0.5}
"""What a method that learns reaches, by the task's headline: of ten digits; of eight classes, of
which the floor everywhere has a mean IoU of 0.055, half as much."""


def small_config(method: type[Method]) -> Mapping[str, Scalar]:
    """The configuration of the small federation of a method's kind, with its own plans."""
    of_kind = SITES if method.reconstructs else DENSE if method.dense else CONFIG
    return {**of_kind, **{n: v for n, v in method.quick.items() if n.startswith(PLANS)}}


def small_data(method: type[Method]) -> DataSets:
    """Its data."""
    first, *others = str(small_config(method)["data.name"]).split("+")
    resolved = tuple(catalogue.resolve(name) for name in others)
    return DataSets(catalogue.resolve(first), others=resolved)


def small_headline(method: type[Method]) -> str:
    """The task's headline metric there."""
    return "ssim" if method.reconstructs else "miou" if method.dense else "accuracy"
