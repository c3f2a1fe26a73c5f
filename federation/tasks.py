"""Tasks: what a network's outputs mean, how they are trained, and how they are measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F

from metrics.classification import accuracy


class Task(Protocol):
    """What a federation needs to know of the problem it solves."""

    @property
    def outputs(self) -> int:
        """Size of a network's last layer."""

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Supervised loss per sample, (n,)."""

    def probabilities(self, outputs: torch.Tensor) -> torch.Tensor:
        """Outputs as probabilities, same shape."""

    def distillation_loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Loss per sample, (n,), against teacher probabilities."""

    def metrics(self, outputs: torch.Tensor, targets: torch.Tensor) -> dict[str, float]:
        """Metrics of outputs on a test set, by name; the first is the headline."""


@dataclass(frozen=True)
class Classification:
    """One label out of `classes` per image."""

    classes: int

    @property
    def outputs(self) -> int:
        return self.classes

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(outputs, targets, reduction="none")

    def probabilities(self, outputs: torch.Tensor) -> torch.Tensor:
        return outputs.softmax(dim=1)

    def distillation_loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Categorical cross-entropy between teacher probabilities and the student, l_1 of DLAD's Eq. 2."""
        return F.cross_entropy(outputs, targets, reduction="none")

    def metrics(self, outputs: torch.Tensor, targets: torch.Tensor) -> dict[str, float]:
        return {"accuracy": accuracy(outputs, targets)}
