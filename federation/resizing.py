"""Samples and values at another size than they are stored at."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F

AT_ONCE = 2**24
"""Values that are resized as float32 at a time."""


def sides_of(size: int | Sequence[int], dimensions: int) -> tuple[int, ...]:
    """`size` as one number for each side: a whole number is that of all.

    Raises ValueError for another number of sides than there are dimensions.
    """
    sides = (size,) * dimensions if isinstance(size, int) else tuple(size)
    if len(sides) != dimensions:
        raise ValueError(f"{len(sides)} sides cannot be those of {dimensions} dimensions")
    return sides


def interpolated(values: torch.Tensor, sides: tuple[int, ...]) -> torch.Tensor:
    """float32 images or volumes (n, c, *sides) at other sides: the mean of what a pixel covers
    where a side shrinks, else between neighbours by distance.
    """
    shrinks = any(new < old for new, old in zip(sides, values.shape[2:], strict=True))
    linear = "bilinear" if len(sides) == 2 else "trilinear"
    return F.interpolate(values, size=sides, mode="area" if shrinks else linear)


def resize(samples: torch.Tensor, size: int | Sequence[int]) -> torch.Tensor:
    """Stored images (n, c, h, w) or volumes (n, c, d, h, w) with all sides of `size` pixels, or
    with the sides it lists; uint8 ones are rounded, float32 ones are not.
    """
    sides = sides_of(size, samples.ndim - 2)
    if tuple(samples.shape[2:]) == sides:
        return samples
    if samples.is_meta:
        return torch.empty((*samples.shape[:2], *sides), dtype=samples.dtype, device="meta")
    parts = []
    for part in samples.split(max(1, AT_ONCE // max(1, samples[:1].numel()))):
        changed = interpolated(part.float(), sides)
        if samples.dtype == torch.uint8:
            changed = changed.round().clamp(0, 255).to(torch.uint8)
        parts.append(changed)
    return torch.cat(parts)
