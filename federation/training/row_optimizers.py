"""Optimisers of many networks at once: each row of a matrix holds one network's parameters, and has
its own state and its own count of steps.

torch.optim counts the steps of a tensor, not of its rows, and so cannot leave out the networks that
have no batch in a step.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import torch

from federation.training.loops import TrainingPlan

BETAS = (0.9, 0.999)
"""Of Adam, as torch.optim has them."""
SMOOTHING = 0.99
"""Of RMSprop's squares."""
EPS = 1e-8


class RowOptimizer:
    """The optimiser of a plan, for `weights` (rows, parameters), which it changes in place."""

    def __init__(self, plan: TrainingPlan, weights: torch.Tensor):
        rules: dict[str, tuple[int, Callable[..., torch.Tensor]]] = {
            "sgd": (int(plan.momentum > 0), functools.partial(_sgd, plan.momentum)),
            "adam": (2, _adam),
            "rmsprop": (1, _rmsprop),
        }
        states, self._update = rules[plan.optimizer]
        self._plan = plan
        self._weights = weights
        self._state = [torch.zeros_like(weights) for _ in range(states)]
        self._steps = weights.new_zeros((len(weights), 1))

    def step(self, gradients: torch.Tensor, rows: torch.Tensor | None, lr: torch.Tensor) -> None:
        """One step of the networks at `rows` (n,), or of all, by their gradients (n, parameters);
        each of these clipped to the plan's norm.
        """
        held = [self._weights, self._steps, *self._state]
        weights, steps, *state = held if rows is None else (tensor[rows] for tensor in held)
        if self._plan.clip_norm:
            norms = gradients.norm(dim=1, keepdim=True)
            gradients = gradients * (self._plan.clip_norm / (norms + 1e-6)).clamp(max=1)
        if self._plan.weight_decay:
            gradients = gradients.add(weights, alpha=self._plan.weight_decay)
        steps += 1
        weights -= self._update(gradients, state, steps, lr)
        if rows is not None:
            for tensor, part in zip(held, (weights, steps, *state), strict=True):
                tensor[rows] = part


# Rules take gradients (rows, parameters), the rows' state, which they change in place, the rows'
# counts of steps (rows, 1) and the learning rate (); they return what is taken away from
# parameters.


def _sgd(
    momentum: float,
    gradients: torch.Tensor,
    state: list[torch.Tensor],
    steps: torch.Tensor,
    lr: torch.Tensor,
) -> torch.Tensor:
    for velocity in state:
        gradients = velocity.mul_(momentum).add_(gradients)
    return gradients * lr


def _adam(
    gradients: torch.Tensor,
    state: list[torch.Tensor],
    steps: torch.Tensor,
    lr: torch.Tensor,
) -> torch.Tensor:
    """Kingma and Ba 2015, Algorithm 1."""
    means, squares = state
    means.lerp_(gradients, 1 - BETAS[0])
    squares.mul_(BETAS[1]).addcmul_(gradients, gradients, value=1 - BETAS[1])
    # 1 - beta ** steps, which single precision would round at the first steps
    first, second = (-torch.expm1(steps * math.log(beta)) for beta in BETAS)
    return means * (first.reciprocal() * lr) / ((squares / second).sqrt_().add_(EPS))


def _rmsprop(
    gradients: torch.Tensor,
    state: list[torch.Tensor],
    steps: torch.Tensor,
    lr: torch.Tensor,
) -> torch.Tensor:
    (squares,) = state
    squares.mul_(SMOOTHING).addcmul_(gradients, gradients, value=1 - SMOOTHING)
    return gradients * lr / (squares.sqrt() + EPS)
