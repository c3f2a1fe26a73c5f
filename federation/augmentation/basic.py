"""Augmentation of whole batches of images as a run asks for it: moves, colours, crops, holes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F


@dataclass(frozen=True)
class Augmentation:
    """Random affine and colour changes, crops and holes, each drawn uniformly and independently per
    image.
    """

    rotation: float = 0.0
    """Largest rotation either way, degrees."""
    shift: float = 0.0
    """Largest shift in width and in height, as a fraction of the side."""
    scale: float = 0.0
    """Largest relative change of size either way: 0.05 is between 0.95 and 1.05."""
    channel_shift: float = 0.0
    """Largest constant added to all channels, as a fraction of the pixel range; the result is
    clipped."""
    horizontal_flip: bool = False
    """Mirror left and right with probability one half."""
    vertical_flip: bool = False
    """Mirror top and bottom with probability one half."""
    quarter_turns: bool = False
    """Turn by 0, 90, 180 or 270 degrees, each as often, exactly; of images as high as wide."""
    crop: int = 0
    """Black pixels added on every side, before a random window of the original size is cut out."""
    cutout: int = 0
    """Side in pixels of a square that is set to the data's mean, about a random pixel; it may reach
    over the border."""


def augment(
    images: torch.Tensor,
    how: Augmentation | None,
    generator: torch.Generator | None,
    mean: Sequence[float] | None = None,
) -> torch.Tensor:
    """Augment images (n, c, h, w); points from outside take the border's value (nearest),
    bilinear inside.

    Quarter turns and vertical flips, crop and cutout follow, in whole pixels. `mean` (of each
    channel) fills a cutout: after normalisation it is the zero of DeVries and Taylor (2017). Next
    to a crop or cutout alone a flip mirrors exactly, without resampling. A channel shift clips to
    [0, 1], all else takes any values. Without `how`, and while planning, when there is no
    generator, images stay as they are. Raises ValueError for volumes, for quarter turns of images
    that are not square, and if a cutout is asked and no mean given.
    """
    return augment_pairs(images, None, how, generator, mean)[0]


def augment_pairs(
    images: torch.Tensor,
    maps: torch.Tensor | None,
    how: Augmentation | None,
    generator: torch.Generator | None,
    mean: Sequence[float] | None = None,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The same of images with `maps` of their pixels, which are moved as they are: whole numbers
    (n, h, w), each pixel the nearest one's, or values (n, k, h, w), bilinear.

    A crop's border has 0 in the maps, what a channel shift or a cutout changes they do not show.
    """
    if how is None or images.is_meta:
        return images, maps
    assert generator is not None
    if images.ndim != 4:
        raise ValueError("only images are augmented, not volumes; leave augmentation.* off")
    if how.cutout and mean is None:
        raise ValueError(
            "a cutout is filled with the channels' means; give augment() the mean that inputs are"
            " normalised with"
        )
    n, device = len(images), images.device

    def uniform(*sides: int) -> torch.Tensor:
        """Between -1 and 1, (n, *sides)."""
        return torch.rand((n, *sides), generator=generator, device=device) * 2 - 1

    def whole(count: int, *sides: int) -> torch.Tensor:
        """Numbers below `count`, (n, *sides)."""
        return torch.randint(count, (n, *sides), generator=generator, device=device)

    angle = uniform() * math.radians(how.rotation)
    offset = uniform(2) * 2 * how.shift  # affine_grid measures the side as 2
    flipped = (uniform() < 0) & how.horizontal_flip
    flip = torch.where(flipped, -1.0, 1.0)
    cos, sin = angle.cos(), angle.sin()
    if how.scale:
        size = 1 + uniform() * how.scale
        cos, sin = cos / size, sin / size  # the grid says where a pixel comes from
    affine = how.rotation or how.shift or how.scale
    exact_flip = how.horizontal_flip and not affine and bool(how.crop or how.cutout)
    if affine or (how.horizontal_flip and not exact_flip):
        ratio = images.shape[2] / images.shape[3]  # a rotation turns pixels, not shares of sides
        top = torch.stack([cos * flip, -sin * ratio, offset[:, 0]], dim=1)
        bottom = torch.stack([sin * flip / ratio, cos, offset[:, 1]], dim=1)
        grid = F.affine_grid(
            torch.stack([top, bottom], dim=1), list(images.shape), align_corners=False
        )
        images = F.grid_sample(
            images, grid, mode="bilinear", padding_mode="border", align_corners=False
        )
        maps = _everywhere(
            maps,
            lambda layers, mode: F.grid_sample(
                layers, grid, mode=mode, padding_mode="border", align_corners=False
            ),
        )
    if how.channel_shift:
        images = (images + uniform(1, 1, 1) * how.channel_shift).clamp(0, 1)
    if exact_flip:
        images, maps = _where(flipped, images, maps, lambda layers: layers.flip(-1))
    if how.vertical_flip:
        images, maps = _where(uniform() < 0, images, maps, lambda layers: layers.flip(-2))
    if how.quarter_turns:
        if images.shape[2] != images.shape[3]:
            raise ValueError(
                "quarter turns are for square images; leave augmentation.quarter_turns off"
            )
        turns = whole(4)
        for bit in (1, 2):
            turn = functools.partial(torch.rot90, k=bit, dims=(-2, -1))
            images, maps = _where((turns & bit) > 0, images, maps, turn)
    if how.crop:
        place = whole(2 * how.crop + 1, 1), whole(2 * how.crop + 1, 1)
        images = _windows(images, how.crop, *place)
        maps = _everywhere(maps, lambda layers, mode: _windows(layers, how.crop, *place))
    if how.cutout and mean is not None:
        place = whole(images.shape[2], 1), whole(images.shape[3], 1)
        hole = _squares(images, how.cutout, *place)
        images = torch.where(hole, filled(mean, images)[:, None, None], images)
    return images, maps


def _everywhere(
    maps: torch.Tensor | None, move: Callable[[torch.Tensor, str], torch.Tensor]
) -> torch.Tensor | None:
    """Maps moved as float32 layers (n, k, h, w), with the mode of interpolation that suits them."""
    if maps is None:
        return None
    if maps.is_floating_point():
        return move(maps, "bilinear")
    return move(maps[:, None].float(), "nearest")[:, 0].to(maps.dtype)  # exact below 2^24


def _where(
    chosen: torch.Tensor,
    images: torch.Tensor,
    maps: torch.Tensor | None,
    change: Callable[[torch.Tensor], torch.Tensor],
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Images, and their maps, changed where `chosen` (n,) says so."""

    def changed(layers: torch.Tensor) -> torch.Tensor:
        return torch.where(chosen.view(-1, *[1] * (layers.ndim - 1)), change(layers), layers)

    return changed(images), None if maps is None else changed(maps)


def filled(values: Sequence[float], like: torch.Tensor) -> torch.Tensor:
    """`values` as a tensor on the device of `like`, in its dtype.

    They are filled in there: a copy from the host, as torch.tensor makes, would wait for all that
    the device has to do.
    """
    return torch.stack(
        [torch.full((), value, dtype=like.dtype, device=like.device) for value in values]
    )


def _windows(
    images: torch.Tensor, border: int, top: torch.Tensor, left: torch.Tensor
) -> torch.Tensor:
    """The window of each black-bordered image (n, c, h, w) whose upper left corner is at `top`,
    `left` (n, 1).
    """
    n, channels, height, width = images.shape
    rows = torch.arange(height, device=images.device) + top
    columns = torch.arange(width, device=images.device) + left
    places = rows[:, :, None] * (width + 2 * border) + columns[:, None, :]
    bordered = F.pad(images, (border,) * 4).flatten(2)
    return bordered.gather(2, places.reshape(n, 1, height * width).expand(n, channels, -1)).view(
        images.shape
    )


def _squares(
    images: torch.Tensor, side: int, row: torch.Tensor, column: torch.Tensor
) -> torch.Tensor:
    """Mask (n, 1, h, w) of a square about `row`, `column` (n, 1): from side // 2 before to side -
    side // 2 after it.
    """

    def span(length: int, centre: torch.Tensor) -> torch.Tensor:
        place = torch.arange(length, device=images.device) - centre + side // 2
        return (place >= 0) & (place < side)

    return (span(images.shape[2], row)[:, :, None] & span(images.shape[3], column)[:, None, :])[
        :, None
    ]
