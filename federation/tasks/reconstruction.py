"""Reconstruction of magnitude images from undersampled k-space."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from federation.tasks.base import mean_over_pixels
from metrics.running_volumes import VolumeQuality


@dataclass(frozen=True)
class Reconstruction:
    """The fully sampled image, float32 (n, 1, h, w) in [0, 1], of what a network sees of it; by the
    L1 loss (FedAD, section 4.3; FL-MRCM, Guo et al. 2021).
    """

    @property
    def outputs(self) -> int:
        return 1

    @property
    def dense(self) -> bool:
        return True

    @property
    def classes(self) -> None:
        return None

    @property
    def metric_names(self) -> tuple[str, ...]:
        return ("ssim", "psnr")

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean absolute error of each image, (n,)."""
        return mean_over_pixels((outputs - targets).abs())

    def probabilities(self, outputs: torch.Tensor) -> torch.Tensor:
        """The outputs as they are: pixels have no probabilities."""
        return outputs

    def distillation_loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean absolute difference from a teacher's outputs, (n,) (Eq. 16's L_w)."""
        return self.loss(outputs, targets)

    def metrics(self) -> VolumeQuality:
        return VolumeQuality()
