"""Values of every pixel or voxel, and magnitude images from undersampled k-space.

Magnitude images give simulated k-space, as in FL-MRCM (Guo et al. 2021) and FedAD (Gong et al.,
section 4.3): the centred, orthonormal Fourier transform of the image. A mask says which columns are
measured; those that are not are zero, and the inverse transform's magnitude is the zero-filled
image that a network begins with.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from fedtables.federation.tasks.base import mean_over_pixels
from fedtables.metrics.images import VolumeQuality
from fedtables.metrics.running import AbsoluteError, RunningMetrics

SIDES = (-2, -1)
DARK = 0.05
"""Of the range: what is not above it is background."""


def to_kspace(images: Tensor) -> Tensor:
    """Complex k-space (..., h, w) of images, its centre in the middle; orthonormal."""
    shifted = torch.fft.ifftshift(images, dim=SIDES)
    return torch.fft.fftshift(torch.fft.fft2(shifted, norm="ortho"), dim=SIDES)


def to_images(kspace: Tensor) -> Tensor:
    """Complex images (..., h, w) of k-space (..., h, w): the inverse of `to_kspace`."""
    shifted = torch.fft.ifftshift(kspace, dim=SIDES)
    return torch.fft.fftshift(torch.fft.ifft2(shifted, norm="ortho"), dim=SIDES)


def zero_filled(images: Tensor, columns: Tensor) -> Tensor:
    """Magnitudes float32 (..., h, w) of images, of whose k-space `columns` (..., 1, w) are kept."""
    return to_images(to_kspace(images) * columns).abs()


def limits(images: Tensor, deviations: float) -> tuple[Tensor, Tensor]:
    """The values (..., 1, 1) that lie so many standard deviations (n - 1) below and above the mean
    of each image (..., h, w), between which FL-MRCM's released code clamps with 6.
    """
    std, mean = torch.std_mean(images, dim=SIDES, keepdim=True)
    return mean - deviations * std, mean + deviations * std


def random_columns(draws: Tensor, acceleration: float, centre: float) -> Tensor:
    """Which columns are measured, bool of the shape of `draws` (..., w), which are uniform in
    [0, 1): round(centre x w) in the middle, and each other one with the probability that makes w /
    acceleration of them in expectation (fastMRI's random masks; MONAI's `RandomKspaceMask` draws so
    too, from a generator of its own).

    Raises ValueError if the centre alone has more.
    """
    width = draws.shape[-1]
    low = round(width * centre)
    if acceleration < 1 or not 0 <= low <= width / acceleration:
        raise ValueError(
            f"a centre of {low} of {width} columns leaves none to draw at acceleration"
            f" {acceleration}; lower the centre's share or the acceleration"
        )
    columns = draws < (width / acceleration - low) / max(1, width - low)
    first = (width - low + 1) // 2
    columns[..., first : first + low] = True
    return columns


@dataclass(frozen=True)
class DenseRegression:
    """`channels` values for each pixel or voxel; targets float32 (n, channels, *sides)."""

    channels: int
    dense: ClassVar[bool] = True
    classes: ClassVar[None] = None
    metric_names: ClassVar[tuple[str, ...]] = ("mean-absolute-error",)

    @property
    def outputs(self) -> int:
        return self.channels

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Mean absolute error of each image, (n,)."""
        return mean_over_pixels((outputs - targets).abs())

    def probabilities(self, outputs: Tensor) -> Tensor:
        """The outputs as they are: values have no probabilities."""
        return outputs

    def distillation_loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Mean absolute difference from a teacher's outputs, (n,)."""
        return self.loss(outputs, targets)

    def metrics(self) -> RunningMetrics:
        return AbsoluteError()


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
    metric_names: ClassVar[tuple[str, ...]] = ("ssim", "psnr")
    condition_channels: ClassVar[int] = 1

    def metrics(self) -> RunningMetrics:
        return VolumeQuality()

    def seen(self, images: Tensor, draws: Tensor) -> Tensor:
        """Zero-filled images of whole ones (n, 1, h, w); `draws` (n, w) in [0, 1) decide."""
        columns = random_columns(draws, self.acceleration, self.centre)
        return zero_filled(images, columns[:, None, None])

    # -- what a generator is told (FedIOD: "the contour of the foreground of the brain") --

    def label_maps(self, targets: Tensor) -> Tensor:
        """The foreground, int64 (n, h, w): where a smoothed, closed image is above `DARK`."""
        bright = (F.avg_pool2d(targets, 3, 1, 1) > DARK).to(targets.dtype)
        framed = F.pad(bright, (4, 4, 4, 4))  # beyond the image it is dark
        closed = -F.max_pool2d(-F.max_pool2d(framed, 5, 1), 5, 1)
        return closed[:, 0].long()

    def condition(self, maps: Tensor) -> Tensor:
        """The contour of the foreground: 1 where a pixel of it touches background, else -1."""
        inside = maps[:, None].float()
        touches = F.max_pool2d(1 - inside, 3, 1, 1)
        return 2 * inside * touches - 1

    def pictured(self, images: Tensor, targets: Tensor) -> Tensor:
        """The fully sampled images."""
        return targets

    def pixel_counts(self, maps: Tensor) -> Tensor:
        """The number of pixels, (1,): there are no classes."""
        return torch.tensor([maps.numel()], device=maps.device)
