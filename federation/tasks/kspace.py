"""Undersampled k-space of magnitude images: what a scanner that skips columns would have measured,
and the image that its measurements alone give.

Magnitude images give simulated k-space, as in FL-MRCM (Guo et al. 2021) and FedAD (Gong et al.,
section 4.3): the centred, orthonormal Fourier transform of the image. A mask says which columns are
measured; those that are not are zero, and the inverse transform's magnitude is the zero-filled
image that a network begins with.
"""

from __future__ import annotations

import torch
from torch import Tensor

SIDES = (-2, -1)


def to_kspace(images: Tensor) -> Tensor:
    """Complex k-space (..., h, w) of images (..., h, w), its centre in the middle; orthonormal, so
    that energy stays what it is (Parseval).
    """
    shifted = torch.fft.ifftshift(images, dim=SIDES)
    return torch.fft.fftshift(torch.fft.fft2(shifted, norm="ortho"), dim=SIDES)


def to_images(kspace: Tensor) -> Tensor:
    """Complex images (..., h, w) of k-space (..., h, w): the inverse of `to_kspace`."""
    shifted = torch.fft.ifftshift(kspace, dim=SIDES)
    return torch.fft.fftshift(torch.fft.ifft2(shifted, norm="ortho"), dim=SIDES)


def zero_filled(images: Tensor, columns: Tensor) -> Tensor:
    """Magnitudes float32 (..., h, w) of images whose k-space has the measured `columns` (..., 1, w)
    alone, 1 or True where it has them.
    """
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
