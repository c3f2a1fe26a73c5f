"""One class per pixel or voxel."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from datasets.annotations import IGNORE
from federation.tasks.base import LabelMaps, mean_over_pixels
from metrics.running import Overlap


@dataclass(frozen=True)
class Segmentation(LabelMaps):
    """One label out of `classes` per pixel or voxel; targets int64 (n, *sides), 255 where there is
    no label.
    """

    classes: int

    @property
    def outputs(self) -> int:
        return self.classes

    @property
    def dense(self) -> bool:
        return True

    @property
    def metric_names(self) -> tuple[str, ...]:
        return ("miou",)

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean cross-entropy over the labelled pixels of each image, (n,); 0 for an image without
        any.
        """
        pixels = (
            outputs.flatten(2).transpose(1, 2).flatten(0, 1)
        )  # of maps the loss has no deterministic gradient on CUDA
        losses = (
            F.cross_entropy(pixels, targets.flatten(), ignore_index=IGNORE, reduction="none")
            .view(len(targets), -1)
            .sum(dim=1)
        )
        return losses / (targets != IGNORE).flatten(1).sum(dim=1).clamp(min=1)

    def probabilities(self, outputs: torch.Tensor) -> torch.Tensor:
        return outputs.softmax(dim=1)

    def distillation_loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean over all pixels, (n,), of the cross-entropy with teacher probabilities (n, classes,
        *sides).
        """
        return mean_over_pixels(F.cross_entropy(outputs, targets, reduction="none"))

    @property
    def condition_channels(self) -> int:
        return self.classes

    def condition(self, targets: torch.Tensor) -> torch.Tensor:
        """A map for each class: 1 where it is, -1 elsewhere and where there is no label."""
        return 2 * self._one_hot(targets).float() - 1

    def pixel_counts(self, targets: torch.Tensor) -> torch.Tensor:
        return self._one_hot(targets).flatten(2).sum(dim=(0, 2))

    def _one_hot(self, targets: torch.Tensor) -> torch.Tensor:
        """bool (n, classes, *sides); false for all classes where there is no label."""
        classes = torch.arange(self.classes, device=targets.device)
        return targets[:, None] == classes.view(-1, *[1] * (targets.ndim - 1))

    def metrics(self) -> Overlap:
        return Overlap(self.classes, IGNORE)
