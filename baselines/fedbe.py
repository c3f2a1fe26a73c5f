"""FedBE: making Bayesian model ensemble applicable to FL (Chen and Chao, ICLR 2021).

The server takes the received models for draws of a distribution of global models. It samples more
of them, and their average learns what all say of public images.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_swa_avg_fn

from fedtables.federation.data import fetch, state_of
from fedtables.federation.federation import Federation
from fedtables.federation.seeds import Stream
from fedtables.federation.shared.averaging import average_states
from fedtables.federation.shared.consensus import enhanced_entropy_reduction
from fedtables.federation.training.inputs import unit_range
from fedtables.federation.training.loops import predict
from fedtables.methods.fedavg import FedAvg, Round, State
from fedtables.privacy.plan import DP_SGD
from fedtables.results.names import check_known
from fedtables.results.numbers import Count, Positive


def diagonal_variance(states: Sequence[State], mean: State, weights: Sequence[float]) -> State:
    """sum_k n_k / n (w_k - mean)^2 of all that `mean` has, in its shapes (paper)."""
    squares = ({name: (state[name] - mean[name]).square() for name in mean} for state in states)
    return average_states(squares, weights)


def gaussian_sample(mean: State, variance: State, stream: Stream) -> State:
    """A draw of N(mean, variance); what has no variance, as BatchNorm's buffers, is the mean."""
    noise = {name: stream.normal(*spread.shape) for name, spread in variance.items()}
    return {**mean, **{n: mean[n] + variance[n].sqrt() * noise[n] for n in noise}}


@dataclass(frozen=True)
class FedBE(FedAvg):
    """Algorithm 1: the average, the sampled and the clients' own models teach the average."""

    title = "FedBE"
    protected: ClassVar[Mapping[str, frozenset[str]]] = {DP_SGD: FedAvg.sends}
    quick: ClassVar[Mapping[str, Any]] = dict(
        FedAvg.quick, samples=3, distillation_batch_size=8, cycle=2, swa_start=2
    )

    samples: Count = 10
    """M, models that are sampled in a round (paper)."""
    distribution: str = "gaussian"
    """`gaussian`, or `dirichlet` for averages with random weights (both in the paper)."""
    alpha: Positive = 1.0
    """Of the symmetric Dirichlet distribution (assumed)."""
    temperature: Positive = 0.5
    """T: the mean probabilities p become p^(1/T) over their sum (released code)."""
    distillation_epochs: Count = 20
    """Epochs on the public images in a round (released code)."""
    distillation_batch_size: Count = 128
    """Public images in a step (released code)."""
    distillation_lr: Positive = 1e-3
    """Learning rate of SGD with a momentum of 0.9 at a cycle's start (released code)."""
    final_lr: Positive = 4e-4
    """Learning rate at a cycle's end (paper)."""
    cycle: Count = 25
    """Steps of a cycle (released code)."""
    swa_start: Count = 500
    """Steps after which SWA averages weights and buffers, if there are as many (released code)."""

    def __post_init__(self) -> None:
        check_known(self, distribution=("gaussian", "dirichlet"))

    def server_state(self, federation: Federation, model: nn.Module) -> dict[str, Any]:
        if federation.task.classes is None or not len(federation.public):
            raise ValueError(f"{self.title} needs public images and a task of classes")
        return {}

    def aggregate(self, this: Round, states: Iterator[State]) -> None:
        federation, public, received = this.federation, this.federation.public, list(states)
        how: dict[str, Any] = {"normalise": federation.normalise, "window": public.window}
        super().aggregate(this, iter(received))
        teacher, probabilities = federation.networks.initial(), []
        for state in [state_of(this.model), *received, *self.sampled(this, received)]:
            teacher.load_state_dict(state)
            outputs = predict(teacher, public.images, **how)
            probabilities.append(federation.task.probabilities(outputs))
        mean = torch.stack(probabilities).mean(dim=0)
        self.distil(this, public.cut(enhanced_entropy_reduction(mean, 1 / self.temperature)))

    def sampled(self, this: Round, received: Sequence[State]) -> Iterator[State]:
        """M draws; of a Dirichlet distribution, averages with weights gamma_k n_k."""
        streams, sizes = this.federation.streams, [client.size for client in this.clients]
        if self.distribution == "dirichlet":
            draws = streams.seeds.numpy("shuffling", "fedbe", this.number)
            for gamma in draws.dirichlet([self.alpha] * len(sizes), self.samples):
                yield average_states(received, (gamma * sizes).tolist())
            return
        mean = state_of(this.model)
        parameters = {name: mean[name] for name, _ in this.model.named_parameters()}
        variance = diagonal_variance(received, parameters, sizes)
        stream = streams.shuffling("fedbe", this.number)
        for _ in range(self.samples):
            yield gaussian_sample(mean, variance, stream)

    def distil(self, this: Round, labels: torch.Tensor) -> None:
        """The global model learns labels (n, classes, ...) of the public images, in place."""
        federation, model, public = this.federation, this.model, this.federation.public
        images, task = public.cut(public.images), federation.task
        stream = federation.streams.shuffling("public", this.number)
        order = torch.cat([stream.shuffled(len(images)) for _ in range(self.distillation_epochs)])
        size = min(self.distillation_batch_size, len(images))
        batches = order[: len(order) // size * size].view(-1, size)
        optimizer = torch.optim.SGD(model.parameters(), self.distillation_lr, momentum=0.9)
        averaged = AveragedModel(model, avg_fn=get_swa_avg_fn(), use_buffers=True)
        rates = np.linspace(self.distillation_lr, self.final_lr, self.cycle).tolist()
        model.train()
        for number, part in enumerate(batches.split(self.cycle), 1):
            for step in federation.steps(len(part), name="distillation"):
                optimizer.param_groups[0]["lr"] = rates[step]
                seen = federation.normalise(unit_range(fetch(images, part[step])))
                wanted = fetch(labels, part[step])
                losses = task.distillation_loss(federation.forward(model, seen), wanted)
                optimizer.zero_grad(set_to_none=True)
                losses.mean().backward()
                optimizer.step()
            if len(part) == self.cycle and number * self.cycle >= self.swa_start:
                averaged.update_parameters(model)
        if averaged.n_averaged:
            model.load_state_dict(averaged.module.state_dict())
