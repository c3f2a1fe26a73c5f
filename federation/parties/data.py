"""The data that the server holds."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from federation.training.windows import Window


@dataclass(frozen=True)
class PublicData:
    """The public set: images, and no labels at all."""

    images: torch.Tensor
    """As stored, (n, c, *sides), on the run's device."""
    digest: str
    """Identifies the content in stage keys."""

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
