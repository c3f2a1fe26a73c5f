"""FedAvg's round throughput in the suite against a bare PyTorch loop that takes the same steps.

The bare loop is what one would write for a single experiment: one network, tensors in memory, the
running average. It has no ledger, no named random streams, no metrics. In fp32 both end with the
same weights, which is checked first.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping

import pytest
import torch
import torch.nn.functional as F

from benchmarks.speed.pairs import compare
from federation.cache import StageCache
from federation.channel import Channel
from federation.client import Client, Shard
from federation.data import LabelledSet, PublicData
from federation.execution import DEFAULT, Execution
from federation.federation import Federation
from federation.inside.setup import HeldOut, Setup
from federation.seeds import Seeds
from federation.tasks.classification import Classification
from federation.training.inputs import Normalisation
from federation.training.plan import TrainingPlan
from methods.fedavg import FedAvg

SIDE, NETWORK, ROUNDS = 32, "resnet8-narrow", 2
LOCAL = {"lr": 0.05, "optimizer": "sgd"}
FAST = {
    "bf16": Execution("bf16"),
    "compiled": Execution(compile="default"),
    "bf16, compiled": Execution("bf16", "default"),
}


class Simulation:
    """`clients` clients with `samples` random images each, of whom `share` take part in a round."""

    def __init__(
        self, clients: int, samples: int, share: float, batch_size: int, normalise: Normalisation
    ):
        generator = torch.Generator().manual_seed(0)
        shape = (clients * samples, len(normalise.mean), SIDE, SIDE)
        self.images = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
        self.labels = torch.randint(0, 10, shape[:1], generator=generator)
        self.shards = torch.arange(len(self.images)).split(samples)
        self.method = FedAvg(rounds=ROUNDS, participation=share)
        self.plan = TrainingPlan(epochs=1, batch_size=batch_size, **LOCAL)
        self.normalise = normalise
        self.trained = ROUNDS * round(share * clients) * samples
        """Images that go through a training step."""

    def federation(self, execution: Execution = DEFAULT) -> Federation:
        def client(index: int, indices: torch.Tensor) -> Client:
            return Client(
                index,
                NETWORK,
                NETWORK,
                Shard(self.images, self.labels, indices),
                (len(indices),),
                str(index),
            )

        few = self.images[:2]
        return Federation(
            Setup(
                clients=tuple(
                    [client(index, indices) for index, indices in enumerate(self.shards)]
                ),
                public=PublicData(few, ""),
                task=Classification(10),
                network=NETWORK,
                image_shape=(3, SIDE, SIDE),
                normalise=self.normalise,
                local=self.plan,
                server=self.plan,
                seeds=Seeds(),
                stages=StageCache(None),
                channel=Channel(),
                execution=execution,
            ),
            HeldOut(LabelledSet(few, self.labels[:2], "")),
        )

    def suite(self, execution: Execution = DEFAULT) -> dict[str, torch.Tensor]:
        return dict(self.method.fit(self.federation(execution)).state)

    def bare(self) -> dict[str, torch.Tensor]:
        federation = (
            self.federation()
        )  # for the same initial weights, cohorts and orders of samples
        model = federation.networks.initial(NETWORK)
        worker = copy.deepcopy(model)
        mean, std = (
            torch.tensor(values).view(1, -1, 1, 1)
            for values in (self.normalise.mean, self.normalise.std)
        )
        for number in range(1, ROUNDS + 1):
            cohort = federation.streams.participants(number, self.method.participation)
            average = {
                name: torch.zeros_like(entry, dtype=torch.float32)
                for name, entry in model.state_dict().items()
            }
            for client in cohort:
                worker.load_state_dict(model.state_dict())
                worker.train()
                optimizer = torch.optim.SGD(worker.parameters(), lr=self.plan.lr)
                indices = self.shards[client.index]
                generator = federation.streams.seeds.torch(
                    "shuffling", "client", client.index, "round", number
                )
                for batch in torch.randperm(len(indices), generator=generator).split(
                    self.plan.batch_size
                ):
                    chosen = indices[batch]
                    inputs = (self.images[chosen].float() / 255 - mean) / std
                    loss = F.cross_entropy(
                        worker(inputs.contiguous(memory_format=torch.channels_last)),
                        self.labels[chosen],
                    )
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                for name, entry in worker.state_dict().items():
                    average[name] += entry / len(cohort)
            model.load_state_dict(
                {
                    name: e if model.state_dict()[name].is_floating_point() else e.round()
                    for name, e in average.items()
                }
            )
        return model.state_dict()


def flat(state: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """All entries of a network's state in one vector."""
    return torch.cat([entry.flatten().double() for entry in state.values()])


NORMALISE = Normalisation((0.5,) * 3, (0.25,) * 3)


@pytest.mark.parametrize(
    ("clients", "samples", "share"),
    [(20, 128, 1.0), (1000, 50, 0.05)],
    ids=["20 clients", "1000 clients"],
)
@pytest.mark.parametrize("batch_size", [16, 64])
def test_rounds(benchmark, clients, samples, share, batch_size):
    simulation = Simulation(clients, samples, share, batch_size, NORMALISE)
    ours, bare = flat(simulation.suite()), flat(simulation.bare())
    trained = ours - flat(simulation.federation().networks.initial(NETWORK).state_dict())
    assert (
        (ours - bare).norm() < 0.01 * trained.norm()
    )  # averages are summed in another precision, and training enlarges that
    compare(
        benchmark,
        {"bare loop": simulation.bare, "suite": simulation.suite},
        work=simulation.trained,
    )


def test_fast_settings(benchmark):
    """With and without bf16 and compilation; the warm-up compiles, unless the cache on disk has it
    already.
    """
    simulation = Simulation(20, 128, 1.0, 64, NORMALISE)
    ways = {
        name: lambda execution=execution: simulation.suite(execution)
        for name, execution in FAST.items()
    }
    compare(
        benchmark,
        {"bare loop": simulation.bare, "suite": simulation.suite, **ways},
        work=simulation.trained,
    )
