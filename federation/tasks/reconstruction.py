"""Reconstruction of magnitude images from undersampled k-space."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from federation.tasks.dense_regression import DenseRegression
from federation.tasks.kspace import random_columns, zero_filled
from metrics.running import RunningMetrics
from metrics.running_volumes import VolumeQuality

DARK = 0.05
"""Of the range: what is not above it is background."""


@dataclass(frozen=True)
class Reconstruction(DenseRegression):
    """The fully sampled image, float32 (n, 1, h, w) in [0, 1], of what a network sees of it; by the
    L1 loss (FedAD, section 4.3; FL-MRCM, Guo et al. 2021). Measured by the volume.
    """

    channels: int = 1
    acceleration: float = 4.0
    """Columns for each one that is measured."""
    centre: float = 0.08
    """Share of the columns, in the middle, that are measured always."""

    @property
    def metric_names(self) -> tuple[str, ...]:
        return ("ssim", "psnr")

    def metrics(self) -> RunningMetrics:
        return VolumeQuality()

    def seen(self, images: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
        """Zero-filled images of fully sampled ones (n, 1, h, w); `draws` (n, w), uniform in [0, 1),
        decide on each one's columns.
        """
        columns = random_columns(draws, self.acceleration, self.centre)
        return zero_filled(images, columns[:, None, None])

    # -- what a generator is told (FedIOD: "the contour of the foreground of the brain") --

    @property
    def condition_channels(self) -> int:
        return 1

    def label_maps(self, targets: torch.Tensor) -> torch.Tensor:
        """The foreground, int64 (n, h, w): 1 where an image, smoothed and with dark parts of a few
        pixels closed, is brighter than `DARK`.
        """
        bright = (F.avg_pool2d(targets, 3, 1, 1) > DARK).to(targets.dtype)
        framed = F.pad(bright, (4, 4, 4, 4))  # beyond the image it is dark
        closed = -F.max_pool2d(-F.max_pool2d(framed, 5, 1), 5, 1)
        return closed[:, 0].long()

    def condition(self, maps: torch.Tensor) -> torch.Tensor:
        """The contour of the foreground: 1 where a pixel of it touches background, else -1."""
        inside = maps[:, None].float()
        touches = F.max_pool2d(1 - inside, 3, 1, 1)
        return 2 * inside * touches - 1

    def pictured(self, images: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The fully sampled images."""
        return targets

    def pixel_counts(self, maps: torch.Tensor) -> torch.Tensor:
        """The number of pixels, (1,): there are no classes."""
        return torch.tensor([maps.numel()], device=maps.device)
