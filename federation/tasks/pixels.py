"""A class, an object or regions of every pixel or voxel."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F

from fedtables.datasets.source import IGNORE
from fedtables.federation.tasks.base import LabelMaps, mean_over_pixels
from fedtables.metrics.instances import instances_of, ternary
from fedtables.metrics.masks import Reading
from fedtables.metrics.running import Overlap, RunningMetrics
from fedtables.metrics.running_masks import BinaryOverlap, NucleiOverlap, RegionOverlap

Distance = Literal["objects", "mask"]
CLASSES = 3
"""Background, inside and boundary of objects."""
TUMOUR = (("tumour", (1,)),)
"""One region: the foreground of a binary mask."""
BRATS = (("whole-tumour", (1, 2, 4)), ("tumour-core", (1, 4)), ("enhancing", (4,)))
"""The regions of the BraTS challenge, by the labels of its segmentations from 2017 to 2021: 1
necrotic core, 2 oedema, 4 enhancing tumour."""


class PixelClasses(LabelMaps):
    """Outputs (n, classes, *sides) are scores of each pixel's classes; targets (n, *sides) are
    these, or what `classes_of` makes them of.
    """

    def classes_of(self, targets: torch.Tensor) -> torch.Tensor:
        """The class of every pixel (n, *sides); another number where there is no label."""
        return targets

    def probabilities(self, outputs: torch.Tensor) -> torch.Tensor:
        return outputs.softmax(dim=1)

    def distillation_loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean over pixels, (n,), of the cross-entropy with probabilities (n, classes, *sides)."""
        return mean_over_pixels(F.cross_entropy(outputs, targets, reduction="none"))

    def layers(self, maps: torch.Tensor) -> torch.Tensor:
        classes = torch.arange(self.outputs, device=maps.device)
        return self.classes_of(maps)[:, None] == classes.view(-1, *[1] * (maps.ndim - 1))


def _by_pixel(outputs: torch.Tensor) -> torch.Tensor:
    """Scores (pixels, classes): cross-entropy of maps has no deterministic gradient on CUDA."""
    return outputs.flatten(2).transpose(1, 2).flatten(0, 1)


@dataclass(frozen=True)
class Segmentation(PixelClasses):
    """A label of `classes` for each pixel or voxel; targets uint8 (n, *sides), 255 for none."""

    classes: int
    metric_names: ClassVar[tuple[str, ...]] = ("miou",)

    @property
    def outputs(self) -> int:
        return self.classes

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean cross-entropy over the labelled pixels of each image, (n,); 0 without any."""
        pixels = _by_pixel(outputs)
        wanted = targets.flatten().long()
        losses = F.cross_entropy(pixels, wanted, ignore_index=IGNORE, reduction="none")
        labelled = (targets != IGNORE).flatten(1).sum(dim=1).clamp(min=1)
        return losses.view(len(targets), -1).sum(dim=1) / labelled

    def metrics(self) -> Overlap:
        return Overlap(self.classes, IGNORE)


@dataclass(frozen=True)
class Nuclei(PixelClasses):
    """Three classes for each pixel; targets int64 (n, h, w), 0 or the number of an object."""

    outputs: ClassVar[int] = CLASSES
    classes: ClassVar[int] = CLASSES
    metric_names: ClassVar[tuple[str, ...]] = ("dice", "obj-dice", "aji", "hd95")
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0)
    """Of the classes in the cross-entropy."""
    reading: Reading = "paper"
    """How metrics are read where a paper and its code differ (`fedtables.metrics.instances`)."""
    distance: Distance = "mask"
    """HD95 of `objects`, or of all their pixels together."""
    smallest: int = 20
    """Objects of fewer pixels are dropped from a prediction."""
    radius: int = 2
    """Pixels by which a prediction's objects grow, of which the boundary has taken one."""

    def classes_of(self, targets: torch.Tensor) -> torch.Tensor:
        """Background, inside or boundary of every pixel."""
        return ternary(targets)

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Weighted cross-entropy with the classes of pixels, mean over pixels, (n,)."""
        classes = self.classes_of(targets)
        weights = sum(weight * (classes == n) for n, weight in enumerate(self.weights))
        losses = F.cross_entropy(_by_pixel(outputs), classes.flatten(), reduction="none")
        return mean_over_pixels(losses.view(classes.shape) * weights)

    def found(self, outputs: torch.Tensor) -> torch.Tensor:
        """The objects of outputs (n, 3, h, w), int64 (n, h, w): 0 for none, else a number."""
        classes = outputs.argmax(dim=1).cpu().numpy()
        maps = [instances_of(image, self.smallest, self.radius) for image in classes]
        return torch.from_numpy(np.stack(maps).astype(np.int64))

    def metrics(self) -> NucleiOverlap:
        return NucleiOverlap(
            self.reading, distance=self.distance, minimum=self.smallest, radius=self.radius
        )


@dataclass(frozen=True)
class Regions(LabelMaps):
    """Overlapping regions, each by a sigmoid; targets uint8 (n, *sides), 255 for no label."""

    regions: tuple[tuple[str, tuple[int, ...]], ...]
    """Name and labels of each."""
    cross_entropy: float = 1.0
    """Weight of the binary cross-entropy in the loss."""
    dice: float = 1.0
    """Weight of the soft Dice loss."""
    reading: Reading = "paper"
    """How metrics are read where a paper and its code differ (`fedtables.metrics.masks`)."""

    @property
    def outputs(self) -> int:
        return len(self.regions)

    @property
    def classes(self) -> int:
        return self.outputs

    @property
    def metric_names(self) -> tuple[str, ...]:
        if len(self.regions) == 1:
            return ("dice", "sensitivity", "specificity", "hd95")
        return ("dice", *(f"dice-{name}" for name, _ in self.regions))

    def layers(self, maps: torch.Tensor) -> torch.Tensor:
        layers = [
            torch.stack([maps == label for label in labels]).any(dim=0)
            for _, labels in self.regions
        ]
        return torch.stack(layers, dim=1).float()

    def pixel_counts(self, maps: torch.Tensor) -> torch.Tensor:
        """Pixels in each region, (regions,); of one region, those outside and inside, (2,)."""
        inside = super().pixel_counts(maps)
        return inside if len(inside) > 1 else torch.cat([maps.numel() - inside, inside])

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Binary cross-entropy of labelled pixels and soft Dice loss, means over regions, (n,). The
        Dice has one pixel more above and below its fraction.
        """
        masks, labelled = self.layers(targets), (targets != IGNORE)[:, None].float()
        entropy = F.binary_cross_entropy_with_logits(outputs, masks, reduction="none") * labelled
        shares = labelled.flatten(1).mean(dim=1).clamp(min=1e-12)
        losses = self.cross_entropy * mean_over_pixels(entropy) / shares
        if not self.dice:
            return losses
        probabilities, masks = ((x * labelled).flatten(2) for x in (outputs.sigmoid(), masks))
        both = (probabilities * masks).sum(dim=2)
        either = probabilities.sum(dim=2) + masks.sum(dim=2)
        overlap = (2 * both + 1.0) / (either + 1.0)
        return losses + self.dice * (1 - overlap).mean(dim=1)

    def probabilities(self, outputs: torch.Tensor) -> torch.Tensor:
        return outputs.sigmoid()

    def distillation_loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean, (n,), of the binary cross-entropy with probabilities (n, regions, *sides)."""
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
