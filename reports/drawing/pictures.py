"""Images beside each other: what was private and what an attack made of it, what networks see in
images, and where.

All are drawn as a grid of images in RGB. What a kind of picture shows is painted into them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_hex, to_rgb
from matplotlib.patches import Patch
from skimage.segmentation import find_boundaries

from reports.drawing.figures import (
    ONE_COLUMN,
    TICK,
    TWO_COLUMNS,
    Texts,
    blank,
    filled,
    finish,
    styled,
)
from reports.tables.table import Layout

ACROSS = 10
"""Images in a line of the picture of an attack."""
FEW = 4
"""Images in a line from which on it is two columns wide."""
NAMES = 0.7
"""Inches for what stands on the left of a line."""
OKABE_ITO = ("#000000", "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7")
"""Okabe and Ito, Color Universal Design, 2008: told apart by all eyes."""
ERRORS = "inferno"
"""Colours of errors."""

Line = tuple[str, Sequence[np.ndarray], Sequence[str]]
"""A line's name, its images (h, w, 3) in [0, 1], and what stands under each, or nothing."""


@styled
def image_grid(
    lines: Sequence[Line],
    titles: Sequence[str],
    path: Path,
    about: Layout | Texts,
    handles: Sequence[Patch] = (),
    errors: float = 0.0,
) -> None:
    """A picture with a line of images for each of `lines`, below the `titles` of the columns;
    `errors` is the end of the scale of errors, drawn beside them, if there are any.
    """
    across = max(len(images) for _, images, _ in lines)
    height, width, _ = lines[0][1][0].shape
    whole = ONE_COLUMN if across < FEW else TWO_COLUMNS
    noted = 0.16 if any(notes for *_, notes in lines) else 0.0
    high = (whole - NAMES) / across * height / width + noted
    figure = blank((whole, high * len(lines) + 0.3), 0.015)
    axes = figure.subplots(len(lines), across, squeeze=False)
    for places, (name, images, notes) in zip(axes, lines, strict=True):
        for axis in places[len(images) :]:
            axis.set_visible(False)
        for number, (axis, image) in enumerate(zip(places, images, strict=False)):
            axis.imshow(image, interpolation="none")
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set_visible(True)
            axis.set_xlabel(notes[number] if notes else "", labelpad=2, fontsize=TICK)
        named: Any = {"rotation": 0, "ha": "right", "va": "center", "fontsize": TICK}
        places[0].set_ylabel(filled(name, NAMES, TICK), **named)
    for axis, title in zip(axes[0], titles, strict=False):
        axis.set_title(filled(title, (whole - NAMES) / across, TICK), fontsize=TICK)
    if errors:
        scale = ScalarMappable(Normalize(0, errors), ERRORS)
        bar = figure.colorbar(scale, ax=axes, fraction=0.02, pad=0.01, extend="max")
        bar.ax.tick_params(labelsize=TICK)
    finish(figure, about, path, handles)


def image_rows(
    rows: Mapping[str, np.ndarray], notes: Mapping[str, Sequence[str]], path: Path, title: str
) -> None:
    """A picture with a line of images for each of `rows`: images (n, c, h, w) in [0, 1] by the
    line's name.

    All lines have the same n; more than `ACROSS` images go on below. `notes` holds, by the name of
    a line, what is written under each of its images.
    """
    count = len(next(iter(rows.values())))
    lines = [
        (
            name,
            [rgb(np.clip(image, 0, 1)) for image in images[start : start + ACROSS]],
            list(notes.get(name, ()))[start : start + ACROSS],
        )
        for start in range(0, count, ACROSS)
        for name, images in rows.items()
    ]
    image_grid(lines, (), path, Texts(title))


def rgb(image: np.ndarray) -> np.ndarray:
    """An image (c, h, w) as (h, w, 3) in [0, 1], bytes too; of other than three channels the first,
    in grey.
    """
    pixels = image.transpose(1, 2, 0) / (255 if image.dtype == np.uint8 else 1)
    return pixels if pixels.shape[2] == 3 else np.repeat(pixels[..., :1], 3, axis=2)


def outlined(pixels: np.ndarray, objects: np.ndarray, colour: str) -> np.ndarray:
    """Pixels (h, w, 3) with the outlines of objects (h, w), numbered from 1: their pixels that have
    another object, or none, beside them.
    """
    border = find_boundaries(objects, mode="inner", connectivity=1)
    return np.where(border[..., None], to_rgb(colour), pixels)


def tinted(film: np.ndarray, active: np.ndarray, colours: Sequence[str]) -> np.ndarray:
    """Pixels (h, w, 3) with areas (m, h, w) tinted, each in a colour; where several meet, in their
    mean.
    """
    tints = np.array([to_rgb(colour) for colour in colours])
    number = active.sum(axis=0)[..., None]
    tint = np.einsum("mhw,mc->hwc", active.astype(float), tints) / np.maximum(number, 1)
    return np.where(number > 0, 0.55 * film + 0.45 * tint, film)


def error_colours(error: np.ndarray, most: float) -> np.ndarray:
    """Errors (h, w) in the colours of the scale that ends at `most`."""
    shown: np.ndarray = colormaps[ERRORS](np.clip(error / most, 0, 1))
    return shown[..., :3]


def class_colours(count: int) -> list[str]:
    """A colour for each class: the eight of Okabe and Ito, or as many hues as it takes."""
    if count <= len(OKABE_ITO):
        return list(OKABE_ITO[:count])
    places = range(count) if count <= 20 else np.linspace(0, 1, count)
    return list(map(to_hex, colormaps["tab20" if count <= 20 else "turbo"](places)))
