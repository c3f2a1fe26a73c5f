"""Histology with a number for every nucleus: images, instance maps in the forms that sets come in,
and folders of both with an index.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from datasets.annotations import INSTANCES, Annotation
from datasets.folders import all_of, read_table, unrepeated
from datasets.pictures import opened
from datasets.source import DataError

NUCLEI = {"nuclei": Annotation(INSTANCES, 1, "the nuclei of an image, numbered in any order")}
"""The annotation of all sets of nuclei."""
TCGA_MEAN, TCGA_STD = (0.7442, 0.5381, 0.6650), (0.1580, 0.1969, 0.1504)
"""Of training images of Kumar et al. (2017) after colour normalisation: what the released code of
Chang et al. (2020) and of FedIOD (Gong et al. 2024) normalises with."""
MOST = 65_535
"""Objects in an image."""


def read_rgb(path: Path) -> np.ndarray:
    """An image uint8 (h, w, 3); opacity is dropped. Raises DataError if it cannot be read."""
    try:
        with opened(path) as image:
            return np.asarray(image.convert("RGB"))
    except (OSError, ValueError, SyntaxError) as error:
        raise DataError(f"{path} is not a readable image ({error}). Get it again.") from error


def numbered(objects: np.ndarray, what: object = "an instance map") -> np.ndarray:
    """An instance map of whole numbers as uint16 with objects 1 to n, in the order of their old
    numbers; 0 stays 0.

    Raises DataError for more than 65,535 objects and for negative numbers, naming `what`.
    """
    values, places = np.unique(objects, return_inverse=True)
    if values[0] < 0:
        raise DataError(f"{what} has the object number {values[0]}, below 0")
    if values[0] > 0:  # every pixel lies in an object
        places = places + 1
    if places.max() > MOST:
        raise DataError(f"{what} has {places.max():,} objects, more than {MOST:,}")
    return places.reshape(objects.shape).astype(np.uint16)


def separated(mask: np.ndarray) -> np.ndarray:
    """The connected parts of a mask (h, w) as an instance map uint16; corners connect."""
    from scipy import ndimage

    parts, count = ndimage.label(mask, structure=np.ones((3, 3), bool))
    if count > MOST:
        raise DataError(f"a mask has {count:,} parts, more than {MOST:,}")
    return np.asarray(parts, np.uint16)


# -- the forms of instance maps --


def _polygons(path: Path) -> list[np.ndarray]:
    """The outlines of an Aperio ImageScope file, each (vertices, 2) as x and y in pixels."""
    try:
        root = ElementTree.parse(path).getroot()
        outlines = [
            np.array(
                [
                    (float(vertex.attrib["X"]), float(vertex.attrib["Y"]))
                    for vertex in region.iterfind("Vertices/Vertex")
                ]
            ).reshape(-1, 2)
            for region in root.iterfind("Annotation/Regions/Region")
        ]
    except (ElementTree.ParseError, OSError, KeyError, ValueError) as error:
        raise DataError(
            f"{path} is not a readable ImageScope annotation ({error}). Get it again."
        ) from error
    if not all(np.isfinite(outline).all() for outline in outlines):
        raise DataError(f"{path} has a vertex that is no place. Get it again.")
    return outlines


def _enclosed(outline: np.ndarray) -> float:
    """Area of a polygon in pixels."""
    if len(outline) < 3:
        return 0.0
    x, y = (outline - outline[0]).T
    return float(abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2)


def read_outlines(path: Path, sides: tuple[int, int]) -> np.ndarray:
    """An instance map uint16 of `sides` from the outlines of an Aperio ImageScope XML file
    (`Annotation/Regions/Region/Vertices/Vertex` with X and Y in pixels).

    A pixel belongs to an outline that its centre lies in, and to the first of several, as in the
    script that came with MoNuSeg. ImageScope joins the last vertex to the first. Raises DataError
    for a file that cannot be read and for an outline that is open: one with fewer than three
    vertices or without an area.
    """
    from skimage.draw import polygon

    objects = np.zeros(sides, np.int64)
    for number, outline in enumerate(_polygons(path), 1):
        if _enclosed(outline) < 1e-6:
            raise DataError(
                f"{path}: the outline of region {number} is open: its {len(outline)} vertices"
                " enclose nothing. Get it again."
            )
        rows, columns = polygon(outline[:, 1], outline[:, 0], sides)
        free = objects[rows, columns] == 0
        objects[rows[free], columns[free]] = number
    return numbered(objects, path)


def _from_mat(path: Path) -> np.ndarray:
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        return np.asarray(loadmat(path, variable_names=["inst_map"])["inst_map"])
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        NotImplementedError,
        zlib.error,
        MatReadError,
    ) as error:
        raise DataError(
            f"{path} is not a MATLAB file with the array inst_map ({error}). Get it again."
        ) from error


def _from_text(path: Path) -> np.ndarray:
    try:
        numbers = np.array(path.read_text(encoding="ascii").split(), np.int64)
        width, height = numbers[:2]
        return numbers[2:].reshape(height, width)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path} is not a width, a height and as many object numbers ({error}). Get it again."
        ) from error


def _from_png(path: Path) -> np.ndarray:
    try:
        with opened(path) as image:
            return np.asarray(image)
    except (OSError, ValueError, SyntaxError) as error:
        raise DataError(f"{path} is not a readable image ({error}). Get it again.") from error


def read_objects(path: Path, sides: tuple[int, int]) -> np.ndarray:
    """The instance map uint16 of an image of `sides` (height, width), by the suffix of its file.

    `.xml` are outlines of ImageScope; `.mat` a MATLAB file with `inst_map`; `.txt` a width, a
    height and a number for each pixel, row by row; everything else a picture whose grey values are
    object numbers. Objects are numbered anew from 1. Raises DataError for a file that cannot be
    read and for a map of other sides than the image.
    """
    suffix = path.suffix.lower()
    if suffix == ".xml":
        return read_outlines(path, sides)
    objects = {".mat": _from_mat, ".txt": _from_text}.get(suffix, _from_png)(path)
    same_sides(path, objects, sides)
    if not np.array_equal(objects, np.rint(objects)):
        raise DataError(f"{path} has object numbers that are not whole. Get it again.")
    return numbered(objects.astype(np.int64), path)


def same_sides(path: Path, mask: np.ndarray, sides: tuple[int, int]) -> None:
    """Raise DataError for a mask of another size than its image."""
    if mask.shape != sides:
        raise DataError(
            f"{path} has {' x '.join(map(str, mask.shape))} pixels, its image"
            f" {' x '.join(map(str, sides))}. Get both again."
        )


# -- folders --


def read_all(
    pairs: Sequence[tuple[Path, Path]],
    sides: tuple[int, int],
    objects_of: Callable[[Path, tuple[int, int]], np.ndarray] = read_objects,
    pad: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Images uint8 (n, 3, *sides) and instance maps uint16 (n, *sides) of pairs of files.

    With `pad` smaller images are filled up at the right and below, with white and without objects.
    Raises DataError for an image of other sides, or a larger one.
    """
    images = np.full((len(pairs), 3, *sides), 255, np.uint8)  # filled in place: saves a copy
    objects = np.zeros((len(pairs), *sides), np.uint16)

    def read(index: int) -> None:
        path, where = pairs[index]
        image = read_rgb(path)
        height, width, _ = image.shape
        fits = height <= sides[0] and width <= sides[1]
        if not fits or (not pad and (height, width) != sides):
            raise DataError(
                f"{path} has {height} x {width} pixels, expected"
                f" {'at most ' if pad else ''}{sides[0]} x {sides[1]}. Get it again."
            )
        images[index, :, :height, :width] = image.transpose(2, 0, 1)
        objects[index, :height, :width] = objects_of(where, (height, width))

    with ThreadPoolExecutor() as pool:
        list(pool.map(read, range(len(pairs))))
    return images, objects


def read_index(folder: Path, columns: Sequence[str], how_to_get: str) -> list[dict[str, str]]:
    """The rows of `index.csv`, which has a column `id`, in the order of the ids.

    Raises DataError for a table without the columns, and for an id that is there twice.
    """
    table = folder / "index.csv"
    rows = read_table(table, ("id", *columns), how_to_get)
    unrepeated(table, [row["id"] for row in rows], how_to_get)
    return sorted(rows, key=lambda row: row["id"])


def indexed(
    title: str,
    folder: Path,
    rows: Sequence[dict[str, str]],
    how_to_get: str,
    suffixes: Sequence[str] = (".png",),
) -> list[Path]:
    """`index.csv`, then `images/ID` with the first suffix that is there and `labels/ID.png` of each
    row. Raises DataError if any is missing.
    """
    wanted = [[folder / "index.csv"]]
    for row in rows:
        wanted.append([folder / "images" / f"{row['id']}{suffix}" for suffix in suffixes])
        wanted.append([folder / "labels" / f"{row['id']}.png"])
    return all_of(title, wanted, how_to_get)


def pairs_of(paths: Sequence[Path]) -> list[tuple[Path, Path]]:
    """Image and map of each row, of what `indexed` gives."""
    return [*zip(paths[1::2], paths[2::2], strict=True)]
