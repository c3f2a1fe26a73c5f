"""A network in training beside what trains it, for methods with loops of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn


@dataclass
class Learner:
    """A network in training, with its optimiser and schedule."""

    module: nn.Module
    optimizer: torch.optim.Optimizer
    schedule: torch.optim.lr_scheduler.LRScheduler

    def step(self) -> None:
        """A step down the gradient, and one along the schedule; then the gradients are dropped."""
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.schedule.step()

    def parts(self, name: str) -> dict[str, Any]:
        """What a snapshot keeps, by name."""
        return {
            name: self.module,
            f"{name} optimizer": self.optimizer,
            f"{name} schedule": self.schedule,
        }
