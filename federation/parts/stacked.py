"""Local training of several clients as one vectorised computation.

Their weights lie in one tensor per parameter, (clients, ...), of which every client's network holds
views, and `torch.func.vmap` runs the forward and backward pass of all at once. Small networks leave
most of a GPU idle one at a time. Every client keeps its own order of samples and its own optimiser
state, so the results are those of training one after another, up to rounding (dropout draws
differ).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import nn

from federation.parties.client import Shard
from federation.samples import on_client, see
from federation.training.augmentation import Augmentation
from federation.training.loops import (
    DivergedError,
    Loss,
    Normalisation,
    TrainingPlan,
    batches,
    training_pairs,
)

Batch = tuple[torch.Tensor, torch.Tensor]


def train_stacked(
    models: Sequence[nn.Module],
    shards: Sequence[Shard],
    loss: Loss,
    plan: TrainingPlan,
    *,
    normalise: Normalisation,
    generators: Sequence[torch.Generator],
    augmentation: Augmentation | None = None,
) -> None:
    """Train every model in place on its shard, as `train` would; all models must be of the same
    network.

    In each step those clients that have a full batch are trained together; a smaller last batch is
    trained by itself. Raises DivergedError if an epoch's loss is not finite.
    """
    states = [{**dict(model.named_parameters()), **dict(model.named_buffers())} for model in models]
    with torch.no_grad():
        stack = {name: _stack([state[name] for state in states]) for name in states[0]}
        originals = [
            {name: tensor.data for name, tensor in state.items()} for state in states
        ]  # in the memory layout they came in
        for position, state in enumerate(states):
            for name, tensor in state.items():
                tensor.data = stack[name][position]
    trained = [name for name, _ in models[0].named_parameters()]
    everyone = [parameter for model in models for parameter in model.parameters()]
    optimizer = plan.make_optimizer(
        everyone, fused=False
    )  # fused ones take a gradient's layout in memory for the weight's
    schedule = plan.make_schedule(optimizer)

    def objective(
        weights: dict[str, torch.Tensor],
        buffers: dict[str, torch.Tensor],
        inputs: torch.Tensor,
        targets: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        losses = loss(
            torch.func.functional_call(models[0], {**weights, **buffers}, (inputs,)), targets
        )
        return losses.mean(), losses.detach().sum()

    together = torch.func.vmap(torch.func.grad(objective, has_aux=True), randomness="different")
    for epoch in range(1, plan.epochs + 1):
        for model in models:
            model.train()
        total = torch.zeros((), device=everyone[0].device)
        feeds = [
            _feed(shard, plan, generator, normalise, augmentation)
            for shard, generator in zip(shards, generators, strict=True)
        ]
        while step := [
            (position, batch)
            for position, feed in enumerate(feeds)
            if (batch := next(feed, None)) is not None
        ]:
            optimizer.zero_grad(
                set_to_none=True
            )  # the optimiser passes over those who have no batch left
            full = [position for position, (_, targets) in step if len(targets) == plan.batch_size]
            if len(full) > 1:
                inputs, targets = map(
                    _stack, zip(*[batch for p, batch in step if p in full], strict=True)
                )
                if len(full) == len(models):
                    chosen = stack
                else:
                    rows = torch.tensor(full).to(inputs.device, non_blocking=True)
                    chosen = {name: tensor[rows] for name, tensor in stack.items()}
                buffers = {name: tensor for name, tensor in chosen.items() if name not in trained}
                gradients, losses = together(
                    {name: chosen[name] for name in trained}, buffers, inputs, targets
                )
                for row, position in enumerate(full):
                    for name in trained:
                        states[position][name].grad = gradients[name][row]
                    if chosen is not stack:
                        for name, tensor in buffers.items():
                            stack[name][position] = tensor[row]
                total += losses.sum()
            for position, (inputs, targets) in step:
                if position not in full or len(full) == 1:
                    alone = loss(models[position](inputs), targets)
                    alone.mean().backward()
                    total += alone.detach().sum()
            if plan.clip_norm:
                for position, _ in step:
                    torch.nn.utils.clip_grad_norm_(models[position].parameters(), plan.clip_norm)
            optimizer.step()
        if not math.isfinite(total.item()):
            raise DivergedError(
                f"the training loss is {total.item()} in epoch {epoch} of {plan.epochs}; lower lr"
                f" (now {plan.lr:g})"
            )
        schedule.step()
    for state, before in zip(states, originals, strict=True):
        for name, tensor in state.items():
            tensor.data = before[name].copy_(tensor.detach())


def _stack(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The tensors as one, (clients, ...), in the usual memory layout: on CUDA vmap has no BatchNorm
    for channels last.
    """
    return torch.stack(list(tensors), out=tensors[0].new_empty((len(tensors), *tensors[0].shape)))


def _feed(
    shard: Shard,
    plan: TrainingPlan,
    generator: torch.Generator,
    normalise: Normalisation,
    augmentation: Augmentation | None,
) -> Iterator[Batch]:
    """A client's inputs and targets of one epoch, batch by batch."""
    images, targets = shard.images, shard.targets
    for batch in batches(len(shard), plan.batch_size, generator):
        with on_client():
            see(len(batch))
        yield training_pairs(images[batch], targets[batch], normalise, augmentation, generator)
