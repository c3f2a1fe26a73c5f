"""What methods with training loops of their own share: a network in training beside what trains it,
and how many steps an epoch has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from fedtables.federation.client import Client
from fedtables.federation.federation import Federation
from fedtables.federation.training.plan import TrainingPlan


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


def learner_of(plan: TrainingPlan, module: nn.Module) -> Learner:
    """A network that is trained by a plan, in parts: a snapshot may come between any two."""
    optimizer = plan.make_optimizer(module.parameters(), fused=False)
    return Learner(module, optimizer, plan.make_schedule(optimizer))


def learn_probe(
    federation: Federation, model: nn.Module, plan: TrainingPlan, *names: object, **options: Any
) -> None:
    """Train a network in place on the server's own labelled samples, by the task's loss."""
    probe, loss = federation.probe(), federation.task.loss
    federation.train(model, probe.images, probe.targets, loss, plan, *names, **options)


def steps_per_epoch(steps: int, batch_size: int, clients: Sequence[Client]) -> int:
    """`steps`, or, where these are 0, as many as the largest client has batches."""
    return steps or max(-(-client.size // batch_size) for client in clients)
