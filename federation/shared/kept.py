"""What clients and server keep over rounds, and what they correct gradients by."""

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from fedtables.federation.client import Client, Shard
from fedtables.federation.federation import Federation
from fedtables.federation.training.inputs import batch_count, unit_range
from fedtables.federation.training.plan import TrainingPlan


class Kept(dict[str, torch.Tensor]):
    """Tensors by name that outlive a round, in the memory that they have from the start."""

    def state_dict(self) -> dict[str, torch.Tensor]:
        return dict(self)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for name, tensor in self.items():
            tensor.copy_(state[name])


def zeros_like(model: nn.Module) -> Kept:
    """A zero for every parameter of `model`."""
    return Kept({name: torch.zeros_like(w.detach()) for name, w in model.named_parameters()})


def frozen_copy(model: nn.Module) -> nn.Module:
    """A copy of `model` as it is now, in evaluation mode, which nothing trains."""
    return copy.deepcopy(model).eval().requires_grad_(False)


def moved(model: nn.Module, received: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """w - w_t by the parameter's name: how far training took `model` from what it received."""
    return {name: w.detach() - received[name] for name, w in model.named_parameters()}


def linear_term(model: nn.Module, direction: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """<direction, w> (), over all parameters: its gradient is the direction."""
    products = [(direction[name] * w).sum() for name, w in model.named_parameters()]
    return torch.stack(products).sum()


def gradient_at(
    shard: Shard, federation: Federation, client: Client, model: nn.Module
) -> dict[str, torch.Tensor]:
    """On a client: the gradient of its mean loss at `model`, which is as in evaluation, by the
    parameter's name; without augmentation.
    """
    task, size = client.task or federation.task, federation.local.batch_size
    parameters = dict(model.named_parameters())
    total = [torch.zeros_like(w) for w in parameters.values()]
    model.eval()
    for images, targets in zip(shard.images.split(size), shard.targets.split(size), strict=True):
        inputs = federation.normalise(unit_range(images.to(federation.networks.device)))
        outputs = federation.forward(model, inputs)
        loss = task.loss(outputs, targets.to(outputs.device)).sum() / len(shard)
        parts = torch.autograd.grad(loss, list(parameters.values()))
        total = [so_far + part for so_far, part in zip(total, parts, strict=True)]
    return dict(zip(parameters, total, strict=True))


def local_steps(federation: Federation, client: Client, plan: TrainingPlan) -> tuple[int, int]:
    """How many steps the client's next training by `plan` has, and how many of them are an
    epoch.
    """
    private = federation.privacy.steps(client, plan)
    if private is None:
        each = batch_count(client.size, plan.batch_size)
        return plan.epochs * each, each
    return private.steps, private.steps_per_epoch


def summed_rate(plan: TrainingPlan, steps: int, each: int) -> float:
    """How far `steps` steps of SGD go down a gradient of 1, `each` an epoch: K eta for K steps of a
    constant rate without momentum. Momentum makes it longer: 13.14 eta for five steps with 0.9.
    """
    way = speed = 0.0
    rates = plan.rates()
    rate = plan.lr
    for step in range(steps):
        rate = next(rates) if step % each == 0 else rate
        speed = plan.momentum * speed + 1
        way += rate * speed
    return way
