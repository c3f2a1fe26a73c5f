"""The data that the server holds."""

from __future__ import annotations

from dataclasses import dataclass

import torch


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
