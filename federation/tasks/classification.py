"""One class per image."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from metrics.running import Accuracy


@dataclass(frozen=True)
class Classification:
    """One label out of `classes` per image; targets int64 (n,)."""

    classes: int

    @property
    def outputs(self) -> int:
        return self.classes

    @property
    def dense(self) -> bool:
        return False

    @property
    def metric_names(self) -> tuple[str, ...]:
        return ("accuracy",)

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(outputs, targets, reduction="none")

    def probabilities(self, outputs: torch.Tensor) -> torch.Tensor:
        return outputs.softmax(dim=1)

    def distillation_loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Categorical cross-entropy between teacher probabilities and the student, l_1 of DLAD's
        Eq. 2.
        """
        return F.cross_entropy(outputs, targets, reduction="none")

    def metrics(self) -> Accuracy:
        return Accuracy()
