"""Data as tensors: what a network is trained on, and what the server holds."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from federation.windows import Window, patches


@dataclass(frozen=True)
class TrainingSet:
    """What a network is trained on."""

    images: torch.Tensor
    """As they are stored, (n, c, *sides)."""
    targets: torch.Tensor
    """(n, ...)."""
    weights: torch.Tensor | None = None
    """What each sample's loss is multiplied by, (n,); None for 1."""

    def __len__(self) -> int:
        return len(self.images)


@dataclass(frozen=True)
class PublicData:
    """The public set: images, and no labels at all."""

    images: torch.Tensor
    """As stored, (n, c, *sides), on the run's device."""
    digest: str
    """Identifies the content in stage keys."""
    window: Window | None = None
    """How a network sees images larger than it takes, when a client answers for them; None where it
    takes them whole."""
    patches: int = 0
    """Patches along a side of such an image in training; 0 for as few as cover it."""

    def cut(self, maps: torch.Tensor) -> torch.Tensor:
        """What is trained on of images or of answers for them, (n, c, *sides): their patches, all
        of them in one order; where networks take images whole, what is given.
        """
        if self.window is None:
            return maps
        return patches(maps, self.window.sides, self.patches)

    def __len__(self) -> int:
        return len(self.images)


@dataclass(frozen=True)
class LabelledSet:
    """Images with their targets: the test set, or what the server holds itself."""

    images: torch.Tensor
    targets: torch.Tensor
    digest: str
    groups: torch.Tensor | None = None
    """Whose each image is (n,), if metrics are to be aggregated by that too."""
    window: Window | None = None
    """How a network sees images larger than it takes; None where it takes them whole."""
    places: torch.Tensor | None = None
    """Of findings, at which pixels each is, bool (n, findings, height, width), if that is known."""
