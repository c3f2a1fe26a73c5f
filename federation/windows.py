"""Samples at other sizes than they are stored at, and larger ones than a network takes: patches to
train on, and overlapping windows, whose outputs are stitched.
"""

import functools
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from fedtables.results.files import DataError

AT_ONCE = 2**24
"""Values that are resized as float32 at a time."""


@dataclass(frozen=True)
class Window:
    """Sliding windows over (n, c, *sides), by MONAI's `sliding_window_inference`.

    Where windows overlap, outputs are averaged, more of what lies in a window's middle. A sample
    with shorter sides than the window is filled up with zeros, of which the outputs are cut off
    again.
    """

    sides: tuple[int, ...]
    """Of a window in pixels: what the network takes."""
    overlap: float = 0.25
    """Share of a window's side that its neighbour has too."""

    def __post_init__(self) -> None:
        if not 0 <= self.overlap < 1 or min(self.sides) < 1:
            raise ValueError(f"windows have sides from 1 pixel and overlap by less than 1: {self}")

    def count(self, sides: tuple[int, ...]) -> int:
        """Windows over a sample of these sides."""
        steps = [max(1, int(side * (1 - self.overlap))) for side in self.sides]
        return math.prod(
            1 + max(0, math.ceil((length - side) / step))
            for length, side, step in zip(sides, self.sides, steps, strict=True)
        )

    def seen(self, samples: torch.Tensor) -> torch.Tensor:
        """As many samples of a window's sides as a network sees of `samples`: for planning."""
        windows = len(samples) * self.count(tuple(samples.shape[2:]))
        return samples.new_empty((windows, samples.shape[1], *self.sides))

    def stitched(
        self, model: Callable[[torch.Tensor], torch.Tensor], inputs: torch.Tensor, batch: int
    ) -> torch.Tensor:
        """Outputs (n, k, *sides) of inputs (n, c, *sides), from at most `batch` windows at once."""
        outputs: torch.Tensor = _sliding()(
            inputs, self.sides, batch, model, overlap=self.overlap, mode="gaussian"
        )
        return outputs


@functools.cache
def _sliding() -> Callable[..., Any]:
    """Its import takes seconds, which only those pay whose samples are larger."""
    with warnings.catch_warnings():  # importing it calls what torch has deprecated
        warnings.simplefilter("ignore", FutureWarning)
        from monai.inferers import sliding_window_inference
    return sliding_window_inference


def starts(length: int, size: int, count: int) -> list[int]:
    """Where patches of `size` pixels begin along a side of `length` pixels, ascending: `count` of
    them, or as few as cover it where these are more, spread evenly, to whole pixels, the first at
    its beginning and the last at its end. `size` is at most `length`.

    Sixteen patches of 256 pixels of every image of 1000 x 1000, four along each side, are what
    FedIOD's released code prepares (Gong et al. 2024).
    """
    count = max(count, math.ceil(length / size))
    if count == 1:
        return [0]
    room = length - size
    return sorted({(2 * index * room + count - 1) // (2 * (count - 1)) for index in range(count)})


def patches(maps: torch.Tensor, sides: tuple[int, ...], count: int) -> torch.Tensor:
    """Patches (n x patches, c, *sides) of maps (n, c, *larger), `count` along a side, evenly
    spread, or as few as cover it where these are more. Raises DataError for maps with a shorter
    side.
    """
    for axis, side in enumerate(sides, 2):
        length = maps.shape[axis]
        if length < side:
            raise DataError(
                f"samples of {length} pixels hold no patches of {side}; lower data.image_size"
            )
        maps = torch.cat([maps.narrow(axis, start, side) for start in starts(length, side, count)])
    return maps


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
