"""Colour normalisation of stained tissue by Reinhard et al., "Color transfer between images", IEEE
Computer Graphics and Applications 2001: the mean and the deviation of each channel of a colour
space in which channels vary independently are made those of a target.

The space is l alpha beta of Ruderman et al. (1998), the logarithms of the responses of the cones,
rotated, by the matrices of Reinhard's paper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

RGB_TO_LMS = np.array(
    [[0.3811, 0.5783, 0.0402], [0.1967, 0.7244, 0.0782], [0.0241, 0.1288, 0.8444]]
)
LMS_TO_RGB = np.linalg.inv(RGB_TO_LMS)
"""Computed; of the matrix that the paper prints two entries of the last row are off by 0.01 and
0.02."""
_AXES = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, -2.0], [1.0, -1.0, 0.0]])
LMS_TO_LAB = _AXES / np.sqrt((_AXES**2).sum(axis=1, keepdims=True))
"""Orthonormal."""


@dataclass(frozen=True)
class ColourStatistics:
    """Mean and standard deviation of l, alpha and beta over the pixels of an image."""

    mean: tuple[float, float, float]
    std: tuple[float, float, float]


def _applied(matrix: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    """A matrix (3, 3) times the channels of (3, h, w)."""
    return np.einsum("ij,jhw->ihw", matrix, pixels)


def to_lab(image: np.ndarray) -> np.ndarray:
    """An image uint8 (3, h, w) in l alpha beta, float64 (3, h, w).

    The paper takes logarithms of channels in [0, 1], which of black are not finite; here a channel
    is (byte + 1) / 256.
    """
    return _applied(LMS_TO_LAB, np.log10(_applied(RGB_TO_LMS, (image + 1.0) / 256)))


def to_rgb(lab: np.ndarray) -> np.ndarray:
    """An image uint8 (3, h, w) from l alpha beta; colours that do not exist are cut off."""
    pixels = _applied(LMS_TO_RGB, 10 ** _applied(LMS_TO_LAB.T, lab))
    return np.rint((pixels * 256 - 1).clip(0, 255)).astype(np.uint8)


def colour_statistics(image: np.ndarray) -> ColourStatistics:
    """Statistics of an image uint8 (3, h, w), as a target for others."""
    lab = to_lab(image)
    mean, std = lab.mean(axis=(1, 2)).tolist(), lab.std(axis=(1, 2)).tolist()
    return ColourStatistics((mean[0], mean[1], mean[2]), (std[0], std[1], std[2]))


def normalised(image: np.ndarray, target: ColourStatistics) -> np.ndarray:
    """An image uint8 (3, h, w) with the colour statistics of the target, to the rounding of bytes
    and the cutting off of colours. A channel without deviation takes the target's mean.
    """
    own = colour_statistics(image)
    lab = to_lab(image)
    for channel in range(3):
        deviation = own.std[channel]
        gain = target.std[channel] / deviation if deviation > 1e-9 else 0.0
        lab[channel] = (lab[channel] - own.mean[channel]) * gain + target.mean[channel]
    return to_rgb(lab)
