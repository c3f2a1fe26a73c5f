"""Pictures of objects by their outlines: what rows find in an image, beside the truth."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from safetensors import SafetensorError
from safetensors.numpy import load_file

from reports.drawing.figures import ONE_COLUMN, TICK, TWO_COLUMNS, blank, finish, styled
from reports.tables.table import Layout
from results.files import ResultsError

IMAGE, TARGET = "image", "target"
FOUND, TRUE = "#ffd400", "#00e5ff"
"""Colours of outlines: of what is found, and of the truth."""
FEW = 4
"""Fewer columns fit into one column of a paper."""


def outline(objects: np.ndarray) -> np.ndarray:
    """The pixels of objects (h, w) that have another object, or none, above, below or beside them;
    bool (h, w). What lies behind the border of the image counts as the same.
    """
    around = np.pad(objects, 1, mode="edge")
    neighbours = (around[:-2, 1:-1], around[2:, 1:-1], around[1:-1, :-2], around[1:-1, 2:])
    other = np.any([neighbour != objects for neighbour in neighbours], axis=0)
    return other & (objects > 0)


@styled
def draw_outlines(source: Path, path: Path, rows: Mapping[str, str], about: Layout) -> None:
    """A picture with a line per site: the image, the outlines of what each of `rows` (title by
    key) finds in it, and those of the true objects.

    `source` is a safetensors file of `image/SITE` uint8 (c, h, w) and, of objects numbered from 1,
    `target/SITE` and `ROW/SITE` (h, w); rows that it lacks are left out. Raises ResultsError for a
    file that holds something else.
    """
    try:
        arrays = load_file(source)
    except (OSError, SafetensorError) as error:
        raise ResultsError(f"{source} is not readable ({error}). Regenerate it.") from error
    sites = [name.partition("/")[2] for name in arrays if name.startswith(f"{IMAGE}/")]
    shown = [key for key in rows if all(f"{key}/{site}" in arrays for site in sites)]
    if not sites or any(f"{TARGET}/{site}" not in arrays for site in sites):
        raise ResultsError(f"{source} has no images with their true objects. Regenerate it.")
    across = len(shown) + 2
    width = ONE_COLUMN if across < FEW else TWO_COLUMNS
    figure = blank((width, (width - 0.2) / across * len(sites) + 0.3), 0.015)
    axes = figure.subplots(len(sites), across, squeeze=False)
    titles = ["input", *(rows[key] for key in shown), "ground truth"]
    for line, site in zip(axes, sites, strict=True):
        image = arrays[f"{IMAGE}/{site}"]
        maps = [None, *(arrays[f"{key}/{site}"] for key in shown), arrays[f"{TARGET}/{site}"]]
        for axis, objects in zip(line, maps, strict=True):
            _show(axis, image, objects, TRUE if axis is line[-1] else FOUND)
        line[0].set_ylabel(site, fontsize=TICK)
    for axis, title in zip(axes[0], titles, strict=True):
        axis.set_title("\n".join(textwrap.wrap(title, 16)), fontsize=TICK)
    finish(figure, [], about, path)


def _show(axis: Axes, image: np.ndarray, objects: np.ndarray | None, colour: str) -> None:
    axis.set(xticks=[], yticks=[])
    pixels = image.transpose(1, 2, 0)
    pixels = np.repeat(pixels[..., :1], 3, axis=2) if pixels.shape[2] != 3 else pixels.copy()
    if objects is not None:
        pixels[outline(objects)] = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    axis.imshow(pixels, interpolation="nearest")
