"""RandAugment of whole batches of images, for strong views."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F


@dataclass(frozen=True)
class RandAugment:
    """RandAugment (Cubuk et al., 2020): a few of fourteen operations on every image, drawn with
    replacement.

    Ranges are those of FixMatch (Sohn et al., 2020, appendix on augmentation), with torchvision's
    factors for brightness, colour, contrast and sharpness, which go both ways; FixMatch's are below
    1.
    """

    count: int = 2
    """Operations on an image, one after another; N of RandAugment (FixMatch's implementations:
    2)."""
    magnitude: float = 10.0
    """Strength of an operation, on a scale up to 10; M of RandAugment (FixMatch's implementations:
    10)."""
    sampled: bool = True
    """Whether an operation's strength is uniform in [0, magnitude], as in FixMatch, or always the
    magnitude."""
    geometric: bool = True
    """Whether rotation, shear and translation are among the operations; without, every pixel stays
    where it is."""


GEOMETRIC = ("rotate", "shear-x", "shear-y", "translate-x", "translate-y")
PHOTOMETRIC = (
    "brightness",
    "colour",
    "contrast",
    "sharpness",
    "posterize",
    "solarize",
    "autocontrast",
    "equalize",
    "identity",
)


def rand_augment(
    images: torch.Tensor, how: RandAugment, generator: torch.Generator | None
) -> torch.Tensor:
    """RandAugment of images (n, 1 or 3, h, w), uint8 or in [0, 1], each by itself; the same type
    and shape.

    Points from outside are black, neighbours the nearest (torchvision's and Pillow's defaults).
    Equalisation needs 255 pixels beside those of the brightest value, as in Pillow: it leaves most
    images of 16 x 16 alone. While planning, when there is no generator, images stay as they are.
    """
    if images.is_meta:
        return images
    assert generator is not None
    whole = images if images.dtype == torch.uint8 else images.mul(255).round_().to(torch.uint8)
    names = (*GEOMETRIC, *PHOTOMETRIC) if how.geometric else PHOTOMETRIC
    shape, device = (how.count, len(images)), images.device
    drawn = torch.randint(len(names), shape, generator=generator, device=device)
    strength = torch.full(shape, how.magnitude / 10, device=device)
    if how.sampled:
        strength = strength * torch.rand(shape, generator=generator, device=device)
    signed = torch.where(
        torch.rand(shape, generator=generator, device=device) < 0.5, -strength, strength
    )
    # Sorted by operation, so that each is called once for all its images; how many these are is the
    # one thing to wait for.
    sizes = (drawn[:, None] == torch.arange(len(names), device=device)[:, None]).sum(dim=2).tolist()
    for step in range(how.count):
        order = drawn[step].argsort(stable=True)
        grouped, by, by_signed = whole[order], strength[step, order], signed[step, order]
        start = sum(sizes[step][: len(GEOMETRIC)]) if how.geometric else 0
        if start:
            grouped[:start] = _move(grouped[:start], drawn[step, order[:start]], by_signed[:start])
        for name, size in list(zip(names, sizes[step], strict=True))[-len(PHOTOMETRIC) :]:
            group, start = slice(start, start + size), start + size
            if name != "identity" and len(grouped[group]):
                grouped[group] = _recolour(
                    name,
                    grouped[group],
                    by[group, None, None, None],
                    by_signed[group, None, None, None],
                )
        whole = torch.empty_like(grouped)
        whole[order] = grouped
    return whole if images.dtype == torch.uint8 else whole.to(images.dtype).div_(255)


def _move(images: torch.Tensor, operation: torch.Tensor, signed: torch.Tensor) -> torch.Tensor:
    """Rotate uint8 images (n, c, h, w) by up to 30 degrees, shear them by up to 0.3, or shift them
    by up to 0.3 of the side.

    `operation` (n,) is the place in GEOMETRIC of what each undergoes, `signed` (n,) its strength in
    [-1, 1].
    """
    rotate, shear_x, shear_y, translate_x, translate_y = (
        (operation == number) * signed for number in range(len(GEOMETRIC))
    )
    angle = math.radians(30) * rotate
    # Where a point of the result comes from; affine_grid measures the side as 2.
    ratio = images.shape[2] / images.shape[3]
    right, below = (0.3 * shear_x - angle.sin()) * ratio, (0.3 * shear_y + angle.sin()) / ratio
    across = torch.stack([angle.cos(), right, 0.6 * translate_x], dim=1)
    down = torch.stack([below, angle.cos(), 0.6 * translate_y], dim=1)
    grid = F.affine_grid(
        torch.stack([across, down], dim=1), list(images.shape), align_corners=False
    )
    return F.grid_sample(
        images.float(), grid, mode="nearest", padding_mode="zeros", align_corners=False
    ).to(torch.uint8)


def _recolour(
    name: str, images: torch.Tensor, strength: torch.Tensor, signed: torch.Tensor
) -> torch.Tensor:
    """One of PHOTOMETRIC on uint8 images (n, c, h, w), with each one's strength in [0, 1], also
    with a sign, (n, 1, 1, 1).
    """
    from torchvision.transforms.v2 import (
        functional,
    )  # takes seconds, which other runs need not spend

    if name == "posterize":  # keep 8 to 4 bits
        return images & (256 - 2 ** (4 * strength).round().to(torch.int32)).to(torch.uint8)
    if name == "solarize":  # invert what is at or above the threshold
        return torch.where(images >= 256 * (1 - strength), 255 - images, images)
    if name == "autocontrast":
        return functional.autocontrast(images)
    if name == "equalize":
        return functional.equalize(images)
    lacking = {
        "brightness": functional.adjust_brightness,
        "colour": functional.adjust_saturation,
        "contrast": functional.adjust_contrast,
        "sharpness": functional.adjust_sharpness,
    }[name](images, 0.0).float()  # black, grey, even, or blurred
    return (
        (lacking + (1 + 0.9 * signed) * (images - lacking)).round_().clamp_(0, 255).to(torch.uint8)
    )
