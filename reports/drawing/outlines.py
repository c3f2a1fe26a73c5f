"""Pictures of objects by their outlines: what rows find in an image, beside the truth."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
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
    arrays, sites, shown = read_pictures(source, rows)
    lines = []
    for site in sites:
        image = _rgb(arrays[f"{IMAGE}/{site}"])
        found = [_outlined(image, arrays[f"{key}/{site}"], FOUND) for key in shown]
        lines.append([image, *found, _outlined(image, arrays[f"{TARGET}/{site}"], TRUE)])
    _draw(lines, sites, ["input", *(rows[key] for key in shown), "ground truth"], path, about)


@styled
def draw_made(source: Path, path: Path, rows: Mapping[str, str], about: Layout) -> None:
    """A picture with a line per client: a label map, the images that each of `rows` (title by key)
    makes of it, and the real one.

    `source` is a safetensors file of `image/CLIENT` and `ROW/CLIENT` uint8 (c, h, w), and of
    `target/CLIENT`, objects numbered from 1 (h, w); rows that it lacks are left out. Raises
    ResultsError for a file that holds something else.
    """
    arrays, clients, shown = read_pictures(source, rows)
    lines = []
    for client in clients:
        objects = arrays[f"{TARGET}/{client}"]
        inside = np.repeat((objects > 0)[None].astype(np.uint8) * 255, 3, axis=0)
        made = [_rgb(arrays[f"{key}/{client}"]) for key in shown]
        label_map = _outlined(_rgb(inside), objects, "#000000")
        lines.append([label_map, *made, _rgb(arrays[f"{IMAGE}/{client}"])])
    _draw(lines, clients, ["label map", *(rows[key] for key in shown), "real"], path, about)


def read_pictures(
    source: Path, rows: Mapping[str, str]
) -> tuple[dict[str, np.ndarray], list[str], list[str]]:
    """The arrays of a file, the names behind `image/`, and the rows that have an array of each."""
    try:
        arrays = load_file(source)
    except (OSError, SafetensorError) as error:
        raise ResultsError(f"{source} is not readable ({error}). Regenerate it.") from error
    names = [name.partition("/")[2] for name in arrays if name.startswith(f"{IMAGE}/")]
    if not names or any(f"{TARGET}/{name}" not in arrays for name in names):
        raise ResultsError(f"{source} has no images with their true objects. Regenerate it.")
    shown = [key for key in rows if all(f"{key}/{name}" in arrays for name in names)]
    return arrays, names, shown


def _draw(
    lines: Sequence[Sequence[np.ndarray]],
    names: Sequence[str],
    titles: Sequence[str],
    path: Path,
    about: Layout,
) -> None:
    across = len(titles)
    width = ONE_COLUMN if across < FEW else TWO_COLUMNS
    figure = blank((width, (width - 0.2) / across * len(lines) + 0.3), 0.015)
    axes = figure.subplots(len(lines), across, squeeze=False)
    for places, images, name in zip(axes, lines, names, strict=True):
        for axis, image in zip(places, images, strict=True):
            axis.set(xticks=[], yticks=[])
            axis.imshow(image, interpolation="none")
        places[0].set_ylabel(name, fontsize=TICK)
    for axis, title in zip(axes[0], titles, strict=True):
        axis.set_title("\n".join(textwrap.wrap(title, 16)), fontsize=TICK)
    finish(figure, [], about, path)


def _rgb(image: np.ndarray) -> np.ndarray:
    """An image uint8 (c, h, w) as (h, w, 3); of other than three channels the first, in grey."""
    pixels = image.transpose(1, 2, 0)
    return pixels if pixels.shape[2] == 3 else np.repeat(pixels[..., :1], 3, axis=2)


def _outlined(pixels: np.ndarray, objects: np.ndarray, colour: str) -> np.ndarray:
    """Pixels (h, w, 3) with the outlines of objects (h, w)."""
    painted = pixels.copy()
    painted[outline(objects)] = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return painted
