"""What tasks have in common that give every pixel or voxel one class."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F

from federation.tasks.base import LabelMaps, mean_over_pixels


class PixelClasses(LabelMaps, ABC):
    """Outputs (n, classes, *sides) are scores of each pixel's classes; targets int64 (n, *sides)
    are these, or what `classes_of` makes them of.
    """

    @property
    @abstractmethod
    def outputs(self) -> int:
        """How many classes there are."""

    @property
    def dense(self) -> bool:
        return True

    def classes_of(self, targets: torch.Tensor) -> torch.Tensor:
        """The class of every pixel of targets, int64 (n, *sides); none of them where there is no
        label.
        """
        return targets

    def probabilities(self, outputs: torch.Tensor) -> torch.Tensor:
        return outputs.softmax(dim=1)

    def distillation_loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean over all pixels, (n,), of the cross-entropy with teacher probabilities (n, classes,
        *sides).
        """
        return mean_over_pixels(F.cross_entropy(outputs, targets, reduction="none"))

    @property
    def condition_channels(self) -> int:
        return self.outputs

    def condition(self, maps: torch.Tensor) -> torch.Tensor:
        """What a generator is told of an image, a map for each class: 1 where it is, -1 elsewhere
        and where there is no label.
        """
        return 2 * self._one_hot(maps).float() - 1

    def pixel_counts(self, maps: torch.Tensor) -> torch.Tensor:
        """How many pixels of all label maps are of each class, (classes,)."""
        return self._one_hot(maps).flatten(2).sum(dim=(0, 2))

    def _one_hot(self, maps: torch.Tensor) -> torch.Tensor:
        """bool (n, classes, *sides); false for all classes where there is no label."""
        classes = torch.arange(self.outputs, device=maps.device)
        return self.classes_of(maps)[:, None] == classes.view(-1, *[1] * (maps.ndim - 1))
