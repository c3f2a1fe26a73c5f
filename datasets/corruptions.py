"""Corruptions that leave an image its label: noise, blur and low contrast, one severity each.

They are of the families of Hendrycks and Dietterich ("Benchmarking Neural Network Robustness to
Common Corruptions and Perturbations", 2019).
"""

from collections.abc import Callable, Mapping

import torch
from torchvision.transforms.v2 import functional

Corruption = Callable[[torch.Tensor], torch.Tensor]
"""Takes uint8 images (n, c, h, w); returns as many, corrupted."""

NOISE, BLUR, CONTRAST = 0.15, 0.8, 0.4
"""Standard deviation of Gaussian noise as a share of the range of pixels; that of a Gaussian blur
in pixels, over 5 x 5; what is left of the contrast about an image's mean."""


def noisy(images: torch.Tensor) -> torch.Tensor:
    """With Gaussian noise, the same whenever it is asked for."""
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(images.shape, generator=generator).to(images.device)
    return (images + 255 * NOISE * drawn).round().clamp(0, 255).to(torch.uint8)


def blurred(images: torch.Tensor) -> torch.Tensor:
    """Behind a Gaussian filter."""
    return functional.gaussian_blur(images, [5, 5], [BLUR, BLUR])


def flat(images: torch.Tensor) -> torch.Tensor:
    """With less contrast about each image's own mean."""
    return functional.adjust_contrast(images, CONTRAST)


CORRUPTIONS: Mapping[str, Corruption] = {"noise": noisy, "blur": blurred, "contrast": flat}
