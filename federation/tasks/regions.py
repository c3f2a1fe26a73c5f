"""Regions that may lie inside each other: of every pixel or voxel, whether it belongs to each."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from datasets.source import IGNORE
from federation.tasks.base import LabelMaps, mean_over_pixels
from metrics.masks import Reading
from metrics.running import RunningMetrics
from metrics.running_masks import BinaryOverlap, RegionOverlap

TUMOUR = (("tumour", (1,)),)
"""One region: the foreground of a binary mask."""
BRATS = (("whole-tumour", (1, 2, 4)), ("tumour-core", (1, 4)), ("enhancing", (4,)))
"""The regions of the BraTS challenge, by the labels of its segmentations from 2017 to 2021: 1
necrotic core, 2 oedema, 4 enhancing tumour."""


@dataclass(frozen=True)
class Regions(LabelMaps):
    """Overlapping regions of label maps, each by a sigmoid of its own; targets int64 (n, *sides),
    255 where there is no label.
    """

    regions: tuple[tuple[str, tuple[int, ...]], ...]
    """Name and labels of each."""
    cross_entropy: float = 1.0
    """Weight of the binary cross-entropy in the loss."""
    dice: float = 1.0
    """Weight of the soft Dice loss."""
    squared: bool = False
    """Whether the Dice loss' denominator has squared probabilities (Milletari et al. 2016)."""
    smooth: float = 1.0
    """Added to the numerator and the denominator of the soft Dice, in pixels."""
    reading: Reading = "paper"
    """How metrics are read where a paper and its code differ (`metrics.masks`)."""

    @property
    def outputs(self) -> int:
        return len(self.regions)

    @property
    def dense(self) -> bool:
        return True

    @property
    def classes(self) -> int | None:
        return len(self.regions)

    @property
    def metric_names(self) -> tuple[str, ...]:
        if len(self.regions) == 1:
            return ("dice", "sensitivity", "specificity", "hd95")
        return ("dice", *(f"dice-{name}" for name, _ in self.regions))

    def masks(self, targets: torch.Tensor) -> torch.Tensor:
        """The regions of label maps (n, *sides), float32 (n, regions, *sides) of 0 and 1."""
        layers = [
            torch.stack([targets == label for label in labels]).any(dim=0)
            for _, labels in self.regions
        ]
        return torch.stack(layers, dim=1).float()

    @property
    def condition_channels(self) -> int:
        return len(self.regions)

    def pixel_counts(self, targets: torch.Tensor) -> torch.Tensor:
        """How many pixels of all targets are of each region, (regions,); of one region, how many
        are outside and inside, (2,).
        """
        inside = self.masks(targets).flatten(2).sum(dim=(0, 2)).long()
        return inside if len(inside) > 1 else torch.cat([targets.numel() - inside, inside])

    def condition(self, targets: torch.Tensor) -> torch.Tensor:
        """What a generator is told of an image: its regions, -1 outside and 1 inside."""
        return 2 * self.masks(targets) - 1

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Binary cross-entropy, mean over labelled pixels and regions, and soft Dice loss, mean
        over regions, (n,).
        """
        masks, labelled = self.masks(targets), (targets != IGNORE)[:, None].float()
        entropy = F.binary_cross_entropy_with_logits(outputs, masks, reduction="none") * labelled
        shares = labelled.flatten(1).mean(dim=1).clamp(min=1e-12)
        losses = self.cross_entropy * mean_over_pixels(entropy) / shares
        if not self.dice:
            return losses
        probabilities, masks = ((x * labelled).flatten(2) for x in (outputs.sigmoid(), masks))
        both = (probabilities * masks).sum(dim=2)
        sizes = probabilities.square() if self.squared else probabilities
        either = sizes.sum(dim=2) + masks.sum(dim=2)
        overlap = (2 * both + self.smooth) / (either + self.smooth)
        return losses + self.dice * (1 - overlap).mean(dim=1)

    def probabilities(self, outputs: torch.Tensor) -> torch.Tensor:
        return outputs.sigmoid()

    def distillation_loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Binary cross-entropy with teacher probabilities (n, regions, *sides), mean over pixels
        and regions, (n,).
        """
        return mean_over_pixels(
            F.binary_cross_entropy_with_logits(outputs, targets, reduction="none")
        )

    def found(self, outputs: torch.Tensor) -> torch.Tensor:
        """The first region of outputs (n, regions, *sides), int64 (n, *sides) of 0 and 1."""
        return (outputs[:, 0] > 0).long()

    def metrics(self) -> RunningMetrics:
        if len(self.regions) == 1:
            return BinaryOverlap(IGNORE, self.reading)
        return RegionOverlap(dict(self.regions), IGNORE, self.reading)
