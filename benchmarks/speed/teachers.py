"""A federation of many teachers, for what a step of distillation takes by their number.

Teachers hardly learn anything here; that has no effect on the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.scenarios import small
from benchmarks.scenarios.assembly import Run, build_federation
from benchmarks.scenarios.configuration import Configuration
from benchmarks.scenarios.scenario import DataSets
from datasets import catalogue
from federation.cache import StageCache
from federation.execution import DEFAULT, Execution
from federation.federation import Federation
from federation.method import Method
from federation.seeds import Seeds
from methods.fediod import FedIOD
from methods.fediod.parties import make_nodes, make_server

PUBLIC, BATCH = 3200, 64
CONFIG = {
    **small.CONFIG,
    "data.name": "shapes",
    "data.image_size": 16,
    "partition.public_limit": PUBLIC,
    "partition.client_share": 0.02,
    "partition.test_limit": 20,
    "partition.validation_share": 0.02,
    "network.client": "resnet8-narrow",
    "network.server": "resnet8-narrow",
    "local.epochs": 1,
    "server.epochs": 1,
    "server.batch_size": BATCH,
    "augmentation.rotation": 0,
}
"""Test and validation sets are small: looking at them is no part of a step."""


PAPER = {
    "data.image_size": 32,
    "network.client": "resnet8-wide",
    "network.server": "resnet8-wide",
}
"""What FedIOD's Table 1 has in their place, of its 20 clients."""
PAPER_STEP = {"batch_size": 64, "width": 64, "discriminator_width": 128}


def federation_of(
    clients: int, execution: Execution = DEFAULT, device: str = "cpu", **changes: object
) -> Federation:
    """Clients with narrow ResNet-8 and images of 16 x 16 pixels, but for what is changed."""
    return build_federation(
        Configuration.parse({**CONFIG, **changes, "partition.clients": clients}),
        DataSets(catalogue.resolve("shapes")),
        Method,
        Run(Seeds(), StageCache(None), device=device, execution=execution),
    )


def fediod_step(federation: Federation, **settings: Any) -> Callable[[], object]:
    """Takes a distillation step of FedIOD, whose teachers are trained beforehand."""
    small = {"batch_size": BATCH, "width": 32, "discriminator_width": 32}
    method = FedIOD(epochs=1, steps=10, **{**small, **settings})
    nodes = make_nodes(method, federation)
    server = make_server(method, federation)
    for node in nodes:
        node.begin_epoch(1)
    latents = federation.streams.shuffling("fediod latents", 1)
    return lambda: method.distillation_step(federation, server, nodes, latents)
