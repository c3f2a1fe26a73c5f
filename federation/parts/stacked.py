"""Networks of several clients as one vectorised computation, and their local training by it.

Their parameters lie in one matrix, a row for each client, and `torch.func.vmap` runs the forward
and backward pass of all at once. Small networks leave most of a GPU idle one at a time. Every
client keeps its own order of samples and its own optimiser state, so the results are those of
training one after another, up to rounding (dropout draws differ).
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from federation.samples import on_client, see
from federation.training.augmentation import Augmentation
from federation.training.execution import DEFAULT, Execution
from federation.training.loops import (
    DivergedError,
    Loss,
    Normalisation,
    TrainingPlan,
    batches,
    forward_pass,
    training_pairs,
)
from federation.training.norms import WideBatchNorm
from federation.training.row_optimizers import RowOptimizer

Batch = tuple[torch.Tensor, ...]
"""Stored samples, targets, and sample weights if there are any."""


@dataclass(frozen=True)
class TrainingSet:
    """What a network is trained on."""

    images: torch.Tensor
    """As they are stored, (n, c, *sides)."""
    targets: torch.Tensor
    """(n, ...)."""
    weights: torch.Tensor | None = None
    """What each sample's loss is multiplied by, (n,); None for 1."""

    def __len__(self) -> int:
        return len(self.images)


def train_stacked(
    models: Sequence[nn.Module],
    sets: Sequence[TrainingSet],
    loss: Loss,
    plan: TrainingPlan,
    *,
    normalise: Normalisation,
    generators: Sequence[torch.Generator],
    augmentation: Augmentation | None = None,
    after_epoch: Callable[[int], None] | None = None,
    execution: Execution = DEFAULT,
) -> list[int]:
    """Train every model in place on its set, as `train` would; all models must be of the same
    network, and all sets with sample weights or none. Returns the samples that each has seen.

    In each step the clients whose batches are equally large are one computation: all of them, but
    at the end of an epoch. Before `after_epoch` models have their new weights. Raises DivergedError
    if an epoch's loss is not finite.
    """
    for model in models:
        model.train()
    stack = Stack(models)
    optimizer = RowOptimizer(plan, stack.weights.detach())
    rate, total = stack.weights.new_zeros(2)

    def gradients(
        positions: Sequence[int], rows: torch.Tensor | None, *batch: torch.Tensor
    ) -> torch.Tensor:
        """Those of the networks at `positions`, whose batches, equally large, lie one after another
        in `batch`.
        """
        images, targets, *weights = batch
        drawing = [generators[position] for position in positions]
        pairs = training_pairs(images, targets, normalise, augmentation, drawing)
        whole = (_by_network(tensor, len(positions)) for tensor in (*pairs, *weights))
        own, losses = stack.gradients(loss, rows, *whole, execution=execution)
        total.add_(losses.sum())
        return own

    seen = [0] * len(models)
    for epoch, of_epoch in zip(range(1, plan.epochs + 1), plan.rates(), strict=False):
        total.zero_()
        rate.fill_(of_epoch)
        feeds = [
            _feed(own, plan, generator) for own, generator in zip(sets, generators, strict=True)
        ]
        while step := {
            position: batch
            for position, feed in enumerate(feeds)
            if (batch := next(feed, None)) is not None
        }:
            for position, (images, *_) in step.items():
                seen[position] += len(images)
            by_size = _by_size(step)
            parts = [
                gradients(positions, stack.rows(positions), *_joined([step[p] for p in positions]))
                for positions in by_size.values()
            ]
            rows = stack.rows([position for part in by_size.values() for position in part])
            optimizer.step(torch.cat(parts), rows, rate)
        if not math.isfinite(total.item()):
            raise DivergedError(
                f"the training loss is {total.item()} in epoch {epoch} of {plan.epochs}; lower lr"
                f" (now {plan.lr:g})"
            )
        if after_epoch is not None or epoch == plan.epochs:
            stack.write_to(models)
        if after_epoch is not None:
            after_epoch(epoch)
    return seen


class Stack(nn.Module):
    """Several networks of one kind as one network, in the mode of the first of them: what is
    trained is a matrix with a row for each, (networks, parameters), what is not are buffers
    (networks, ...).

    Samples come and outputs go in the order of the networks, as many for each: (networks x n, ...).
    """

    def __init__(self, models: Sequence[nn.Module]):
        super().__init__()
        trained = {n: p for n, p in models[0].named_parameters() if p.requires_grad}
        self._shapes = {name: parameter.shape for name, parameter in trained.items()}
        self._sizes = [parameter.numel() for parameter in trained.values()]
        states = [_tensors(model) for model in models]
        nothing = next(models[0].parameters()).new_empty(0)
        rows = [
            torch.cat([nothing, *(state[name].flatten() for name in trained)]) for state in states
        ]
        self.weights = nn.Parameter(torch.stack(rows), requires_grad=bool(trained))
        for name in states[0]:
            if name not in trained:
                held = torch.stack([state[name].flatten() for state in states])
                shape = len(states), *states[0][name].shape
                self.register_buffer(name.replace(".", "/"), held.view(shape))
        # No attribute: its own weights are none of these.
        self._call = functools.partial(torch.func.functional_call, models[0])

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        """Outputs (networks x n, ...) of samples (networks x n, ...), differentiable by them and by
        the weights.
        """
        together = torch.func.vmap(self._outputs, randomness="different")
        inputs = _by_network(samples, len(self.weights))
        return together(self.weights, self._fixed(), inputs).flatten(0, 1)

    def rows(self, positions: Sequence[int]) -> torch.Tensor | None:
        """Positions as an index on the device; None for all of them in order."""
        if list(positions) == list(range(len(self.weights))):
            return None
        return torch.tensor(positions).to(self.weights.device, non_blocking=True)

    def gradients(
        self,
        loss: Loss,
        rows: torch.Tensor | None,
        inputs: torch.Tensor,
        targets: torch.Tensor,
        *sample_weights: torch.Tensor,
        execution: Execution = DEFAULT,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Of each network's mean loss on its batch, (rows, parameters), and the sum of its losses,
        (rows,); inputs, and sample weights if there are any, are (rows, n, ...). What networks note
        of the batch, as BatchNorm does, is noted.
        """
        forward = forward_pass(execution, inputs.device)

        def objective(
            row: torch.Tensor,
            fixed: dict[str, torch.Tensor],
            own: torch.Tensor,
            wanted: torch.Tensor,
            *sample_weights: torch.Tensor,
        ) -> tuple[torch.Tensor, torch.Tensor]:
            losses = loss(forward(functools.partial(self._outputs, row, fixed), own), wanted)
            for weights in sample_weights:
                losses = losses * weights
            return losses.mean(), losses.detach().sum()

        together = torch.func.vmap(torch.func.grad(objective, has_aux=True), randomness="different")
        every = self._fixed()
        held = [self.weights.detach(), *every.values()]
        weights, *fixed = held if rows is None else (tensor[rows] for tensor in held)
        noted = dict(zip(every, fixed, strict=True))
        gradients, losses = together(weights, noted, inputs, targets, *sample_weights)
        if rows is not None:
            for name, tensor in noted.items():
                every[name][rows] = tensor
        return gradients, losses

    def write_to(self, models: Sequence[nn.Module]) -> None:
        """Copy each row into its network's tensors."""
        for position, model in enumerate(models):
            own = {name: tensor[position] for name, tensor in self._fixed().items()}
            own |= self._named(self.weights.detach()[position])
            for name, tensor in _tensors(model).items():
                tensor.copy_(own[name])

    def _named(self, row: torch.Tensor) -> dict[str, torch.Tensor]:
        parts = row.split(self._sizes)
        shapes = self._shapes.items()
        return {name: part.view(shape) for part, (name, shape) in zip(parts, shapes, strict=True)}

    def _fixed(self) -> dict[str, torch.Tensor]:
        """What is not trained, by the networks' names, which a buffer cannot have."""
        return {name.replace("/", "."): tensor for name, tensor in self.named_buffers()}

    def _outputs(
        self, row: torch.Tensor, fixed: dict[str, torch.Tensor], samples: torch.Tensor
    ) -> torch.Tensor:
        """Those of one network, (n, ...)."""
        mixed = torch.is_autocast_enabled(samples.device.type)
        with WideBatchNorm() if mixed else contextlib.nullcontext():
            outputs: torch.Tensor = self._call({**self._named(row), **fixed}, (samples,))
        return outputs


def _tensors(model: nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by name, without their history."""
    named = (*model.named_parameters(), *model.named_buffers())
    return {name: tensor.detach() for name, tensor in named}


def _by_size(step: dict[int, Batch]) -> dict[int, list[int]]:
    """Positions of batches by their size."""
    groups: dict[int, list[int]] = {}
    for position, (images, *_) in step.items():
        groups.setdefault(len(images), []).append(position)
    return groups


def _joined(batches: Sequence[Batch]) -> Batch:
    """One batch of several clients', in order."""
    return tuple(torch.cat(part) for part in zip(*batches, strict=True))


def _by_network(samples: torch.Tensor, networks: int) -> torch.Tensor:
    """Samples (networks x n, ...) as (networks, n, ...), in the usual memory layout: on CUDA vmap
    has no BatchNorm for channels last.
    """
    return samples.contiguous().view(networks, -1, *samples.shape[1:])


def _feed(own: TrainingSet, plan: TrainingPlan, generator: torch.Generator) -> Iterator[Batch]:
    """What a client's network is trained on in one epoch, batch by batch."""
    tensors = [own.images, own.targets, *([] if own.weights is None else [own.weights])]
    for batch in batches(len(own), plan.batch_size, generator):
        with on_client():
            see(len(batch))
        yield tuple(tensor[batch] for tensor in tensors)
