"""How a network is trained: what a method says of a training, and what it is added to."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from fedtables.federation.seeds import Stream
from fedtables.federation.tasks.base import Task
from fedtables.federation.training.inputs import Normalisation
from fedtables.results.names import check_known

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Takes outputs (n, ...) and targets (n, ...); returns one loss per sample (n,)."""


@dataclass(frozen=True)
class Batch:
    """What a training step has before it: a batch, and what the model makes of it.

    Empty tensors under DP-SGD, where no sample may be seen outside of the clipped loss.
    """

    inputs: torch.Tensor
    """As the network takes them, augmented and normalised: float32 (n, c, *sides)."""
    outputs: torch.Tensor
    """Of the model that is trained, (n, ...), with their graph."""
    targets: torch.Tensor
    """(n, ...), moved along with the augmentation."""
    features: torch.Tensor | None = None
    """What the network's last linear layer got in that pass, (n, d), with its graph; None for a
    network without one."""


Penalty = Callable[[nn.Module, Batch], torch.Tensor]
"""Takes the model and a batch; returns a scalar to add to the batch's mean loss."""


@dataclass(frozen=True)
class SteadyPenalty:
    """A penalty that is the same function in every step, so that a CUDA graph can hold it: what
    varies it reads from tensors or draws from `streams`, and it never waits for the device.
    """

    term: Penalty
    streams: tuple[Stream, ...] = ()
    """What it draws from."""
    passes: int = 0
    """Further forward passes that it takes of the network, for plans: of networks that it compares
    the trained one with."""

    def __call__(self, model: nn.Module, batch: Batch) -> torch.Tensor:
        return self.term(model, batch)


class DivergedError(Exception):
    """Training produced a loss that is not a number."""


@dataclass(frozen=True)
class TrainingPlan:
    """Epochs, batch size and optimiser of a training."""

    epochs: int
    batch_size: int
    lr: float = 1e-3
    optimizer: str = "adam"
    """`adam`, `rmsprop` or `sgd`."""
    momentum: float = 0.0
    """Momentum of SGD."""
    weight_decay: float = 0.0
    schedule: str = "constant"
    """`constant`, or `cosine` from `lr` to `final_lr` over the epochs."""
    final_lr: float = 0.0
    clip_norm: float = 0.0
    """Largest norm of a step's gradient, over all parameters; 0 for no limit."""

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch_size < 1 or not self.lr > 0:
            raise ValueError(f"epochs and batch_size must be at least 1 and lr above 0: {self}")
        check_known(self, optimizer=("adam", "rmsprop", "sgd"), schedule=("constant", "cosine"))

    def make_optimizer(
        self, parameters: Iterable[nn.Parameter], *, fused: bool = True
    ) -> torch.optim.Optimizer:
        """The optimiser; not `fused` if its state or gradients may have another memory layout than
        the weights.

        A snapshot restores states without their layout, and `torch.func` returns gradients in any.
        """
        # What is not fused goes over all tensors at once on CUDA, unless fused is False: then it
        # goes one by one.
        options: dict[str, Any] = {
            "lr": self.lr,
            "weight_decay": self.weight_decay,
            "fused": fused or None,
        }
        if self.optimizer == "sgd":
            return torch.optim.SGD(parameters, momentum=self.momentum, **options)
        if self.optimizer == "rmsprop":  # which has no fused form
            return torch.optim.RMSprop(parameters, lr=self.lr, weight_decay=self.weight_decay)
        return torch.optim.Adam(parameters, **options)

    def rates(self) -> Iterator[float]:
        """The learning rate of each epoch, without end."""
        clock = self.make_optimizer([nn.Parameter(torch.zeros(1))], fused=False)
        schedule = self.make_schedule(clock)
        while True:
            yield clock.param_groups[0]["lr"]
            clock.step()
            schedule.step()

    def make_schedule(
        self, optimizer: torch.optim.Optimizer
    ) -> torch.optim.lr_scheduler.LRScheduler:
        if self.schedule == "cosine":
            return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, self.epochs, self.final_lr)
        return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1.0)


@dataclass(frozen=True)
class Training:
    """One training of a network: what a method says of it, beside the samples."""

    loss: Loss
    plan: TrainingPlan
    names: tuple[object, ...] = ()
    """Of its streams."""
    label: str = ""
    """For people."""
    penalty: Penalty | None = None
    """Under DP-SGD a term of the weights alone."""
    optimizer: torch.optim.Optimizer | None = None
    """One that goes on from an earlier training; a new one if not given."""
    schedule: torch.optim.lr_scheduler.LRScheduler | None = None
    """Of that optimiser."""
    augmented: bool = True
    """Whether images are augmented as the run asks."""
    normalise: Normalisation | None = None
    """The federation's if not given."""
    task: Task | None = None
    """What the network has outputs for; the federation's if not given."""
    track: bool = False
    """Whether test metrics are noted after the epochs that are looked at. No method may choose
    anything by them."""
