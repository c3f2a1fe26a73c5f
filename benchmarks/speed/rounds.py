"""The rounds of FedAvg that this suite and other simulators are timed on: data, weights and order
of images, in this suite and in a bare loop.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn

from datasets import catalogue
from federation.cache import StageCache
from federation.client import Client, Shard
from federation.data import LabelledSet, PublicData
from federation.federation import Federation
from federation.inside.setup import HeldOut, Setup
from federation.seeds import Seeds
from federation.shared.averaging import average_states
from federation.tasks.classification import Classification
from federation.training.inputs import Normalisation, batches, unit_range
from federation.training.plan import TrainingPlan
from methods.fedavg import FedAvg
from models.catalogue import build

NETWORK = "resnet8-narrow"
CLIENTS, SAMPLES, ROUNDS, LR = 20, 128, 3, 0.01
SEEDS = Seeds()


@dataclass(frozen=True)
class Outcome:
    """What a run leaves."""

    parameters: dict[str, torch.Tensor]
    round_seconds: float
    """Mean over all rounds but the first."""


@functools.cache
def clients_data() -> tuple[str, torch.Tensor, torch.Tensor, Normalisation]:
    """Label of the data, images (clients, samples, ...) in uint8, targets."""
    resolved = catalogue.resolve("cifar10")
    split, source = catalogue.load(resolved.used)["train"], catalogue.source(resolved.used)
    chosen = np.random.default_rng(0).choice(len(split.images), (CLIENTS, SAMPLES), replace=False)
    images, labels = torch.from_numpy(split.images[chosen]), torch.from_numpy(split.labels[chosen])
    return resolved.label, images, labels, Normalisation(source.mean, source.std)


def _federation(batch_size: int, progress: Callable[[str, float], None]) -> Federation:
    _, images, labels, normalise = clients_data()
    clients = [
        Client(
            k,
            "",
            NETWORK,
            Shard(images[k], labels[k]),
            tuple(labels[k].bincount(minlength=10).tolist()),
            str(k),
        )
        for k in range(CLIENTS)
    ]
    plan = TrainingPlan(epochs=1, batch_size=batch_size, lr=LR, optimizer="sgd")
    return Federation(
        Setup(
            clients=tuple(clients),
            public=PublicData(images[0, :0], ""),
            task=Classification(10),
            network=NETWORK,
            image_shape=tuple(images.shape[2:]),
            normalise=normalise,
            local=plan,
            server=plan,
            seeds=SEEDS,
            stages=StageCache(None),
            progress=progress,
        ),
        HeldOut(LabelledSet(images[0, :1], labels[0, :1], "")),
    )


def initial_state(batch_size: int) -> dict[str, torch.Tensor]:
    """The weights that everyone starts from."""
    return _federation(batch_size, lambda text, share: None).networks.initial(NETWORK).state_dict()


def ours(batch_size: int) -> Outcome:
    """This suite's FedAvg."""
    starts: list[float] = []

    def progress(text: str, share: float) -> None:
        if text.startswith("round"):
            starts.append(time.perf_counter())

    federation = _federation(batch_size, progress)
    checkpoint = FedAvg(rounds=ROUNDS, participation=1.0).fit(federation)
    seconds = (time.perf_counter() - starts[1]) / (ROUNDS - 1)
    names = dict(federation.networks.initial(NETWORK).named_parameters())
    return Outcome({name: checkpoint.state[name] for name in names}, seconds)


@functools.cache
def handed_over(batch_size: int, folder: str) -> Path:
    """A file with what the others start from: normalised images, targets, our order of images in
    every round, weights.
    """
    _, images, labels, normalise = clients_data()
    order = torch.stack(
        [
            torch.stack(
                [
                    torch.cat(
                        list(
                            batches(
                                SAMPLES,
                                batch_size,
                                SEEDS.torch("shuffling", "client", k, "round", number),
                            )
                        )
                    )
                    for k in range(CLIENTS)
                ]
            )
            for number in range(1, ROUNDS + 1)
        ]
    )
    normalised = normalise(unit_range(images.flatten(0, 1))).reshape(images.shape).contiguous()
    weights = {
        f"initial/{name}": tensor.contiguous() for name, tensor in initial_state(batch_size).items()
    }
    path = Path(folder) / f"{batch_size}.safetensors"
    save_file(
        {"images": normalised, "targets": labels.contiguous(), "order": order, **weights}, path
    )
    return path


@functools.lru_cache(maxsize=1)
def read_shared(path: str) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Arrays and initial weights of such a file; once in every process."""
    tensors = load_file(path)
    prefix = "initial/"
    initial = {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
    return {name: tensors[name] for name in ("images", "targets", "order")}, initial


def client_batches(
    path: str, client: int, number: int, batch_size: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """A client's batches in round `number` = 1, 2, ..."""
    arrays, _ = read_shared(path)
    for batch in arrays["order"][number - 1, client].split(batch_size):
        yield arrays["images"][client, batch], arrays["targets"][client, batch]


def bare_loop(
    batch_size: int, path: str, memory_format: torch.memory_format = torch.contiguous_format
) -> Outcome:
    """FedAvg with nothing around it."""
    _, initial = read_shared(path)
    model = build(NETWORK, 3, 10, 32).to(memory_format=memory_format)
    shared, starts = initial, []
    for number in range(1, ROUNDS + 1):
        starts.append(time.perf_counter())
        states = []
        for client in range(CLIENTS):
            model.load_state_dict(shared)
            train_client(model, path, client, number, batch_size, memory_format)
            states.append({name: tensor.clone() for name, tensor in model.state_dict().items()})
        shared = average_states(states, [1.0] * CLIENTS)
    seconds = (time.perf_counter() - starts[1]) / (ROUNDS - 1)
    return Outcome({name: shared[name] for name, _ in model.named_parameters()}, seconds)


def train_client(
    model: nn.Module,
    path: str,
    client: int,
    number: int,
    batch_size: int,
    memory_format: torch.memory_format = torch.contiguous_format,
) -> None:
    """A client's epoch in round `number`."""
    optimizer = torch.optim.SGD(model.parameters(), LR)
    model.train()
    for images, targets in client_batches(path, client, number, batch_size):
        optimizer.zero_grad()
        F.cross_entropy(model(images.contiguous(memory_format=memory_format)), targets).backward()
        optimizer.step()
