"""Rounds of FedAvg in this suite and in a bare PyTorch loop, which takes the same steps on the same
images from the same weights.

The bare loop is what one would write for a single experiment: one network, tensors in memory, an
average. It has no ledger, no encoded channel, no metrics.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from fedtables.datasets import catalogue
from fedtables.federation.cache import StageCache
from fedtables.federation.client import Client, Shard
from fedtables.federation.data import LabelledSet, PublicData
from fedtables.federation.federation import Federation
from fedtables.federation.inside.setup import HeldOut, Setup
from fedtables.federation.seeds import Seeds
from fedtables.federation.shared.averaging import average_states
from fedtables.federation.tasks.images import Classification
from fedtables.federation.training.inputs import Normalisation, batches, unit_range
from fedtables.federation.training.plan import TrainingPlan
from fedtables.methods.fedavg import FedAvg
from fedtables.models.catalogue import build

NETWORK, LR, ROUNDS = "resnet8-narrow", 0.01, 3
SEEDS = Seeds()
State = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Outcome:
    """What a run leaves."""

    parameters: State
    round_seconds: float
    """Mean over all rounds but the first."""

    @classmethod
    def of(cls, state: State, seconds: float) -> Outcome:
        """Without running statistics of BatchNorm: training does not read them."""
        names = dict(build(NETWORK, 3, 10, 32).named_parameters())
        return cls({name: state[name].detach().clone() for name in names}, seconds)


def distance(weights: State, wanted: State, start: State) -> float:
    """How far `weights` are from `wanted`, over how far that is from `start`."""

    def norm(one: State, other: State) -> float:
        apart = [(one[name].double() - other[name].double()).flatten() for name in wanted]
        return float(torch.cat(apart).norm())

    return norm(weights, wanted) / norm(wanted, start)


@dataclass(frozen=True)
class Simulation:
    """FedAvg by plain SGD, an epoch a round."""

    images: torch.Tensor
    """(clients, samples, channels, side, side), uint8."""
    labels: torch.Tensor
    """(clients, samples)."""
    normalise: Normalisation
    batch_size: int
    share: float
    """Of the clients, those that take part in a round."""

    @property
    def trained(self) -> int:
        """Images that go through a training step in a round."""
        return round(self.share * len(self.images)) * self.images.shape[1]

    def federation(
        self, progress: Callable[[str, float], None] = lambda text, share: None
    ) -> Federation:
        """The clients, each with a view of its samples."""
        plan = TrainingPlan(epochs=1, batch_size=self.batch_size, lr=LR, optimizer="sgd")
        samples = self.images.shape[1]
        of_clients = torch.arange(self.labels.numel()).split(samples)
        images, labels = self.images.flatten(0, 1), self.labels.flatten()
        clients = [
            Client(k, "", NETWORK, Shard(images, labels, own), (samples,), str(k))
            for k, own in enumerate(of_clients)
        ]
        return Federation(
            Setup(
                clients=tuple(clients),
                public=PublicData(images[:0], ""),
                task=Classification(10),
                network=NETWORK,
                image_shape=tuple(images.shape[1:]),
                normalise=self.normalise,
                local=plan,
                server=plan,
                seeds=SEEDS,
                stages=StageCache(None),
                progress=progress,
            ),
            HeldOut(LabelledSet(images[:1], labels[:1], "")),
        )

    def initial(self) -> nn.Module:
        """The network that everyone starts from."""
        return self.federation().networks.initial(NETWORK)

    def client_batches(
        self, client: int, number: int
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """A client's normalised images and targets in round `number` = 1, 2, ..., in our order."""
        generator = SEEDS.torch("shuffling", "client", client, "round", number)
        for batch in batches(self.images.shape[1], self.batch_size, generator):
            images = self.normalise(unit_range(self.images[client, batch]))
            yield images, self.labels[client, batch]

    def suite(self) -> Outcome:
        """This suite's FedAvg."""
        starts: list[float] = []

        def progress(text: str, share: float) -> None:
            if text.startswith("round"):
                starts.append(time.perf_counter())

        federation = self.federation(progress)
        fitted = FedAvg(rounds=ROUNDS, participation=self.share).fit(federation)
        seconds = (time.perf_counter() - starts[1]) / (ROUNDS - 1)
        return Outcome.of(dict(fitted.state), seconds)

    def bare(self, memory_format: torch.memory_format = torch.channels_last) -> Outcome:
        """FedAvg with nothing around it."""
        streams = self.federation().streams
        model = self.initial().to(memory_format=memory_format)
        shared = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        starts = []
        for number in range(1, ROUNDS + 1):
            starts.append(time.perf_counter())
            states = []
            for client in streams.participants(number, self.share):
                model.load_state_dict(shared)
                self.train_client(model, client.index, number, memory_format)
                states.append({name: entry.clone() for name, entry in model.state_dict().items()})
            shared = average_states(states, [1.0] * len(states))
        seconds = (time.perf_counter() - starts[1]) / (ROUNDS - 1)
        return Outcome.of(shared, seconds)

    def train_client(
        self,
        model: nn.Module,
        client: int,
        number: int,
        memory_format: torch.memory_format = torch.contiguous_format,
    ) -> None:
        """A client's epoch in round `number`."""
        optimizer = torch.optim.SGD(model.parameters(), LR)
        model.train()
        for images, targets in self.client_batches(client, number):
            optimizer.zero_grad()
            outputs = model(images.contiguous(memory_format=memory_format))
            F.cross_entropy(outputs, targets).backward()
            optimizer.step()


@functools.cache
def cifar10(
    batch_size: int, clients: int = 20, samples: int = 128, share: float = 1.0
) -> tuple[str, Simulation]:
    """Label of the data, and clients whose samples are drawn from it; once in every process."""
    resolved = catalogue.resolve("cifar10")
    split, source = catalogue.load(resolved.used)["train"], catalogue.source(resolved.used)
    chosen = np.random.default_rng(0).choice(len(split.images), (clients, samples))
    images, labels = torch.from_numpy(split.images[chosen]), torch.from_numpy(split.labels[chosen])
    normalise = Normalisation(source.mean, source.std)
    return resolved.label, Simulation(images, labels, normalise, batch_size, share)
