"""Augmentation of whole batches of images, on the run's device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F


@dataclass(frozen=True)
class Augmentation:
    """Random affine and colour changes, crops and holes, each drawn uniformly and independently per image."""

    rotation: float = 0.0
    """Largest rotation either way, degrees."""
    shift: float = 0.0
    """Largest shift in width and in height, as a fraction of the side."""
    channel_shift: float = 0.0
    """Largest constant added to all channels, as a fraction of the pixel range; the result is clipped."""
    horizontal_flip: bool = False
    """Mirror left and right with probability one half."""
    crop: int = 0
    """Black pixels added on every side, before a random window of the original size is cut out."""
    cutout: int = 0
    """Side in pixels of a square that is set to the data's mean, about a random pixel; it may reach over the border."""


def augment(
    images: torch.Tensor, how: Augmentation, generator: torch.Generator, mean: Sequence[float] | None = None
) -> torch.Tensor:
    """Augment images (n, c, h, w) in [0, 1]; points from outside take the border's value (nearest), bilinear inside.

    Crop and cutout follow, in whole pixels. `mean` (of each channel) fills a cutout: after normalisation it is the zero
    of DeVries and Taylor (2017). Next to a crop or cutout alone a flip mirrors exactly, without resampling.
    Raises ValueError if a cutout is asked and no mean given.
    """
    if how.cutout and mean is None:
        raise ValueError("a cutout is filled with the channels' means; give augment() the mean that inputs are normalised with")
    n, device = len(images), images.device

    def uniform(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=generator, device=device) * 2 - 1

    def pixels(count: int) -> torch.Tensor:
        return torch.randint(count, (n, 1), generator=generator, device=device)

    angle = uniform(n) * math.radians(how.rotation)
    offset = uniform(n, 2) * 2 * how.shift  # affine_grid measures the side as 2
    flipped = (uniform(n) < 0) & how.horizontal_flip
    flip = torch.where(flipped, -1.0, 1.0)
    cos, sin = angle.cos(), angle.sin()
    exact_flip = how.horizontal_flip and not (how.rotation or how.shift) and bool(how.crop or how.cutout)
    if how.rotation or how.shift or (how.horizontal_flip and not exact_flip):
        top = torch.stack([cos * flip, -sin, offset[:, 0]], dim=1)
        bottom = torch.stack([sin * flip, cos, offset[:, 1]], dim=1)
        grid = F.affine_grid(torch.stack([top, bottom], dim=1), list(images.shape), align_corners=False)
        images = F.grid_sample(images, grid, mode="bilinear", padding_mode="border", align_corners=False)
    if how.channel_shift:
        images = (images + uniform(n, 1, 1, 1) * how.channel_shift).clamp(0, 1)
    if exact_flip:
        images = torch.where(flipped[:, None, None, None], images.flip(3), images)
    if how.crop:
        images = _windows(images, how.crop, pixels(2 * how.crop + 1), pixels(2 * how.crop + 1))
    if how.cutout and mean is not None:
        hole = _squares(images, how.cutout, pixels(images.shape[2]), pixels(images.shape[3]))
        images = torch.where(hole, filled(mean, images)[:, None, None], images)
    return images


def filled(values: Sequence[float], like: torch.Tensor) -> torch.Tensor:
    """`values` as a tensor on the device of `like`, in its dtype.

    They are filled in there: a copy from the host, as torch.tensor makes, would wait for all that the device has to do.
    """
    return torch.stack([torch.full((), value, dtype=like.dtype, device=like.device) for value in values])


def _windows(images: torch.Tensor, border: int, top: torch.Tensor, left: torch.Tensor) -> torch.Tensor:
    """The window of each black-bordered image (n, c, h, w) whose upper left corner is at `top`, `left` (n, 1)."""
    n, channels, height, width = images.shape
    rows = torch.arange(height, device=images.device) + top
    columns = torch.arange(width, device=images.device) + left
    places = rows[:, :, None] * (width + 2 * border) + columns[:, None, :]
    bordered = F.pad(images, (border,) * 4).flatten(2)
    return bordered.gather(2, places.reshape(n, 1, height * width).expand(n, channels, -1)).view(images.shape)


def _squares(images: torch.Tensor, side: int, row: torch.Tensor, column: torch.Tensor) -> torch.Tensor:
    """Mask (n, 1, h, w) of a square about `row`, `column` (n, 1): from side // 2 before to side - side // 2 after it."""

    def span(length: int, centre: torch.Tensor) -> torch.Tensor:
        place = torch.arange(length, device=images.device) - centre + side // 2
        return (place >= 0) & (place < side)

    return (span(images.shape[2], row)[:, :, None] & span(images.shape[3], column)[:, None, :])[:, None]
