"""One class per pixel or voxel."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from datasets.source import IGNORE
from federation.tasks.pixel_classes import PixelClasses
from metrics.running import Overlap


@dataclass(frozen=True)
class Segmentation(PixelClasses):
    """One label out of `classes` per pixel or voxel; targets int64 (n, *sides), 255 where there is
    no label.
    """

    classes: int

    @property
    def outputs(self) -> int:
        return self.classes

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

    def metrics(self) -> Overlap:
        return Overlap(self.classes, IGNORE)
