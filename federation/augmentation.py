"""Augmentation of whole batches of images on the run's device: moves, colours, crops and holes as a
run asks for them, and RandAugment for strong views.
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F


@dataclass(frozen=True)
class Augmentation:
    """Random affine and colour changes, crops and holes, each drawn uniformly for each image."""

    rotation: float = 0.0
    """Largest rotation either way, degrees."""
    shift: float = 0.0
    """Largest shift in width and in height, as a fraction of the side."""
    scale: float = 0.0
    """Largest relative change of size either way: 0.05 is between 0.95 and 1.05."""
    channel_shift: float = 0.0
    """Largest constant added to all channels, as a share of the pixel range; then clipped."""
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


def augment_pairs(
    images: torch.Tensor,
    maps: torch.Tensor | None,
    how: Augmentation | None,
    generator: torch.Generator | None,
    mean: Sequence[float],
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Augment images (n, c, h, w), with `maps` of their pixels if there are any; points from
    outside take the border's value (nearest), bilinear inside.

    Quarter turns and vertical flips, crop and cutout follow, in whole pixels. `mean` (of each
    channel) fills a cutout: after normalisation it is the zero of DeVries and Taylor (2017). Next
    to a crop or cutout alone a flip mirrors exactly, without resampling. A channel shift clips to
    [0, 1], all else takes any values. Without `how`, and while planning, when there is no
    generator, all stays as it is. Raises ValueError for volumes, and for quarter turns of images
    that are not square.

    Maps are moved as they are: whole numbers (n, h, w), each pixel the nearest one's, or values
    (n, k, h, w), bilinear. A crop's border has 0 in the maps, what a channel shift or a cutout
    changes they do not show.
    """
    if how is None or images.is_meta:
        return images, maps
    assert generator is not None
    if images.ndim != 4:
        raise ValueError("only images are augmented, not volumes; leave augmentation.* off")
    n, device = len(images), images.device
    whole_numbers = maps is not None and not maps.is_floating_point()
    parts = [images]
    if maps is not None:  # exact below 2^24
        parts.append(maps[:, None].float() if whole_numbers else maps)

    def uniform(*sides: int) -> torch.Tensor:
        """Between -1 and 1, (n, *sides)."""
        return torch.rand((n, *sides), generator=generator, device=device) * 2 - 1

    def whole(count: int, *sides: int) -> torch.Tensor:
        """Numbers below `count`, (n, *sides)."""
        return torch.randint(count, (n, *sides), generator=generator, device=device)

    def change_where(
        chosen: torch.Tensor, change: Callable[[torch.Tensor], torch.Tensor]
    ) -> list[torch.Tensor]:
        """All parts, changed where `chosen` (n,) says so."""
        return [torch.where(chosen.view(-1, 1, 1, 1), change(part), part) for part in parts]

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
        matrices = torch.stack([top, bottom], dim=1)
        modes = ("bilinear", "nearest" if whole_numbers else "bilinear")
        parts = [
            _moved(part, matrices, mode, "border") for part, mode in zip(parts, modes, strict=False)
        ]
    if how.channel_shift:
        parts[0] = (parts[0] + uniform(1, 1, 1) * how.channel_shift).clamp(0, 1)
    if exact_flip:
        parts = change_where(flipped, lambda part: part.flip(-1))
    if how.vertical_flip:
        parts = change_where(uniform() < 0, lambda part: part.flip(-2))
    if how.quarter_turns:
        if images.shape[2] != images.shape[3]:
            raise ValueError(
                "quarter turns are for square images; leave augmentation.quarter_turns off"
            )
        turns = whole(4)
        for bit in (1, 2):
            turn = functools.partial(torch.rot90, k=bit, dims=(-2, -1))
            parts = change_where((turns & bit) > 0, turn)
    if how.crop:
        place = whole(2 * how.crop + 1, 1), whole(2 * how.crop + 1, 1)
        parts = [_windows(part, how.crop, *place) for part in parts]
    if how.cutout:
        place = whole(images.shape[2], 1), whole(images.shape[3], 1)
        hole = _squares(images, how.cutout, *place)
        parts[0] = torch.where(hole, filled(mean, images)[:, None, None], parts[0])
    if maps is None:
        return parts[0], None
    return parts[0], parts[1][:, 0].to(maps.dtype) if whole_numbers else parts[1]


def _moved(images: torch.Tensor, matrices: torch.Tensor, mode: str, beyond: str) -> torch.Tensor:
    """Images (n, c, h, w) of which each point comes from where the affine map (n, 2, 3) says, in
    shares of half the sides; `beyond` is `grid_sample`'s padding.
    """
    grid = F.affine_grid(matrices, list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, mode=mode, padding_mode=beyond, align_corners=False)


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
    """The window of each black-bordered image (n, c, h, w) from `top`, `left` (n, 1) on."""
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
    """Mask (n, 1, h, w) of a square from side // 2 before `row`, `column` (n, 1)."""

    def span(length: int, centre: torch.Tensor) -> torch.Tensor:
        place = torch.arange(length, device=images.device) - centre + side // 2
        return (place >= 0) & (place < side)

    return (span(images.shape[2], row)[:, :, None] & span(images.shape[3], column)[:, None, :])[
        :, None
    ]


@dataclass(frozen=True)
class RandAugment:
    """RandAugment (Cubuk et al., 2020): a few of fourteen operations on every image, drawn with
    replacement.

    Ranges are those of FixMatch (Sohn et al., 2020, appendix on augmentation), with torchvision's
    factors for brightness, colour, contrast and sharpness, which go both ways; FixMatch's are below
    1.
    """

    count: int = 2
    """Operations on an image, one after another; N of RandAugment (FixMatch: 2)."""
    magnitude: float = 10.0
    """Strength of an operation, on a scale up to 10; M of RandAugment (FixMatch: 10)."""
    sampled: bool = True
    """Whether strengths are uniform in [0, magnitude], as in FixMatch, or the magnitude."""
    geometric: bool = True
    """Whether rotation, shear and translation are among them; else pixels stay in place."""


GEOMETRIC = ("rotate", "shear-x", "shear-y", "translate-x", "translate-y")
PHOTOMETRIC: tuple[str, ...] = (
    "brightness",
    "colour",
    "contrast",
    "sharpness",
    "posterize",
    "solarize",
)
PHOTOMETRIC += ("autocontrast", "equalize", "identity")


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
                strengths = (each[group, None, None, None] for each in (by, by_signed))
                grouped[group] = _recolour(name, grouped[group], *strengths)
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
    matrices = torch.stack([across, down], dim=1)
    return _moved(images.float(), matrices, "nearest", "zeros").to(torch.uint8)


def _recolour(
    name: str, images: torch.Tensor, strength: torch.Tensor, signed: torch.Tensor
) -> torch.Tensor:
    """One of PHOTOMETRIC on uint8 images (n, c, h, w), by each one's strength (n, 1, 1, 1)."""
    # Takes seconds, which other runs need not spend.
    from torchvision.transforms.v2 import functional

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
