"""Labels of whole images: one class, or any number of findings."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F

from fedtables.federation.tasks.base import Task
from fedtables.metrics.classification import UNKNOWN
from fedtables.metrics.running import Accuracy, MeanAUC


@dataclass(frozen=True)
class Classification:
    """One label out of `classes` per image; targets int64 (n,)."""

    classes: int
    dense: ClassVar[bool] = False
    metric_names: ClassVar[tuple[str, ...]] = ("accuracy",)

    @property
    def outputs(self) -> int:
        return self.classes

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(outputs, targets, reduction="none")

    def probabilities(self, outputs: torch.Tensor) -> torch.Tensor:
        return outputs.softmax(dim=1)

    def distillation_loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Cross-entropy with teacher probabilities, l_1 of DLAD's Eq. 2."""
        return F.cross_entropy(outputs, targets, reduction="none")

    def metrics(self) -> Accuracy:
        return Accuracy()


@dataclass(frozen=True)
class MultiLabel:
    """Any of `findings` in each image; targets uint8 (n, findings), 255 where it is not known."""

    findings: tuple[str, ...]
    dense: ClassVar[bool] = False
    classes: ClassVar[None] = None
    """Outputs are not scores of which the highest is the label."""
    metric_names: ClassVar[tuple[str, ...]] = ("mauc",)

    @property
    def outputs(self) -> int:
        return len(self.findings)

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean binary cross-entropy over the known findings of each image, (n,); 0 without any."""
        known, present = targets != UNKNOWN, (targets == 1).to(outputs)
        losses = F.binary_cross_entropy_with_logits(outputs, present, reduction="none") * known
        return losses.sum(dim=1) / known.sum(dim=1).clamp(min=1)

    def probabilities(self, outputs: torch.Tensor) -> torch.Tensor:
        return outputs.sigmoid()

    def distillation_loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean over findings of the binary cross-entropy with teacher probabilities, (n,)."""
        return F.binary_cross_entropy_with_logits(outputs, targets, reduction="none").mean(dim=1)

    def metrics(self) -> MeanAUC:
        return MeanAUC()

    def place(self, outputs: torch.Tensor, findings: Sequence[str]) -> torch.Tensor:
        """Outputs for `findings`, in the places of this label set; NaN where these lack one."""
        placed = outputs.new_full((len(outputs), len(self.findings)), math.nan)
        for column, finding in enumerate(self.findings):
            if finding in findings:
                placed[:, column] = outputs[:, list(findings).index(finding)]
        return placed


def placed(outputs: torch.Tensor, trained_task: Task | None, task: Task) -> torch.Tensor:
    """Outputs of a network that was trained for `trained_task`, as outputs of `task`; only label
    sets can differ so.

    Findings that its own label set lacks are NaN.
    """
    if trained_task in (None, task):
        return outputs
    if isinstance(trained_task, MultiLabel) and isinstance(task, MultiLabel):
        return task.place(outputs, trained_task.findings)
    return outputs
