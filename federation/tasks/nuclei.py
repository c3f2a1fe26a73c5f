"""Objects that touch each other: background, inside or boundary of every pixel, and from these the
objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F

from federation.tasks.base import mean_over_pixels
from federation.tasks.pixel_classes import PixelClasses
from metrics.instances import instances_of, ternary
from metrics.masks import Reading
from metrics.running_masks import NucleiOverlap

Distance = Literal["objects", "mask"]
CLASSES = 3
"""Background, inside and boundary."""


@dataclass(frozen=True)
class Nuclei(PixelClasses):
    """Three classes per pixel of object maps; targets int64 (n, h, w), 0 for background, an object
    number elsewhere.
    """

    weights: tuple[float, float, float] = (1.0, 1.0, 1.0)
    """Of the classes in the cross-entropy."""
    reading: Reading = "paper"
    """How metrics are read where a paper and its code differ (`metrics.instances`)."""
    distance: Distance = "mask"
    """HD95 of `objects`, or of all their pixels together."""
    smallest: int = 20
    """Objects of fewer pixels are dropped from a prediction."""
    radius: int = 2
    """Pixels by which a prediction's objects grow, of which the boundary has taken one."""

    @property
    def outputs(self) -> int:
        return CLASSES

    @property
    def classes(self) -> int | None:
        return CLASSES

    @property
    def metric_names(self) -> tuple[str, ...]:
        return ("dice", "obj-dice", "aji", "hd95")

    def classes_of(self, targets: torch.Tensor) -> torch.Tensor:
        """Background, inside or boundary of every pixel."""
        return ternary(targets)

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Weighted cross-entropy with the classes of the objects' pixels, mean over pixels,
        (n,).
        """
        classes = self.classes_of(targets)
        weights = sum(weight * (classes == n) for n, weight in enumerate(self.weights))
        pixels = outputs.flatten(2).transpose(1, 2).flatten(0, 1)  # deterministic on CUDA
        losses = F.cross_entropy(pixels, classes.flatten(), reduction="none").view(classes.shape)
        return mean_over_pixels(losses * weights)

    def found(self, outputs: torch.Tensor) -> torch.Tensor:
        """The objects of outputs (n, 3, h, w), int64 (n, h, w): 0 for none, else a number."""
        classes = outputs.argmax(dim=1).cpu().numpy()
        maps = [instances_of(image, self.smallest, self.radius) for image in classes]
        return torch.from_numpy(np.stack(maps).astype(np.int64))

    def metrics(self) -> NucleiOverlap:
        return NucleiOverlap(
            self.reading, distance=self.distance, minimum=self.smallest, radius=self.radius
        )
