"""Augmentation of whole batches of images, on the run's device."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F


@dataclass(frozen=True)
class Augmentation:
    """Random affine and colour changes, each drawn uniformly and independently per image."""

    rotation: float = 0.0
    """Largest rotation either way, degrees."""
    shift: float = 0.0
    """Largest shift in width and in height, as a fraction of the side."""
    channel_shift: float = 0.0
    """Largest constant added to all channels, as a fraction of the pixel range; the result is clipped."""
    horizontal_flip: bool = False
    """Mirror left and right with probability one half."""


def augment(images: torch.Tensor, how: Augmentation, generator: torch.Generator) -> torch.Tensor:
    """Augment images (n, c, h, w) in [0, 1]; points from outside take the border's value (nearest), bilinear inside."""
    n, device = len(images), images.device

    def uniform(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=generator, device=device) * 2 - 1

    angle = uniform(n) * math.radians(how.rotation)
    offset = uniform(n, 2) * 2 * how.shift  # affine_grid measures the side as 2
    flip = torch.where((uniform(n) < 0) & how.horizontal_flip, -1.0, 1.0)
    cos, sin = angle.cos(), angle.sin()
    if how.rotation or how.shift or how.horizontal_flip:
        top = torch.stack([cos * flip, -sin, offset[:, 0]], dim=1)
        bottom = torch.stack([sin * flip, cos, offset[:, 1]], dim=1)
        grid = F.affine_grid(torch.stack([top, bottom], dim=1), list(images.shape), align_corners=False)
        images = F.grid_sample(images, grid, mode="bilinear", padding_mode="border", align_corners=False)
    if how.channel_shift:
        images = (images + uniform(n, 1, 1, 1) * how.channel_shift).clamp(0, 1)
    return images
