"""Reconstruction of magnitude images from undersampled k-space."""

from __future__ import annotations

from dataclasses import dataclass

from federation.tasks.dense_regression import DenseRegression
from metrics.running import RunningMetrics
from metrics.running_volumes import VolumeQuality


@dataclass(frozen=True)
class Reconstruction(DenseRegression):
    """The fully sampled image, float32 (n, 1, h, w) in [0, 1], of what a network sees of it: values
    per pixel, by their absolute error (FedAD, section 4.3; FL-MRCM, Guo et al. 2021), measured by
    the volume.
    """

    channels: int = 1

    @property
    def metric_names(self) -> tuple[str, ...]:
        return ("ssim", "psnr")

    def metrics(self) -> RunningMetrics:
        return VolumeQuality()
