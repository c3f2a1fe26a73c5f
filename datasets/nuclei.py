"""Histology with a number for every nucleus: images, instance maps in the forms that sets come in,
and folders of both with an index.
"""

import math
import struct
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from fedtables.datasets.folders import all_of, read_table, reading, unrepeated
from fedtables.datasets.pictures import LOSSLESS, opened, read_rgb
from fedtables.datasets.source import INSTANCES, Annotation, DataError, whole_numbers

NUCLEI = {"nuclei": Annotation(INSTANCES, 1, "the nuclei of an image, numbered in any order")}
"""The annotation of all sets of nuclei."""
TCGA_MEAN, TCGA_STD = (0.7442, 0.5381, 0.6650), (0.1580, 0.1969, 0.1504)
"""Of training images of Kumar et al. (2017) after colour normalisation: what the released code of
Chang et al. (2020) and of FedIOD (Gong et al. 2024) normalises with."""
MOST = 65_535
"""Objects in an image."""


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


def _regions(path: Path) -> list[tuple[np.ndarray, bool]]:
    """The outlines of an Aperio ImageScope file, each (vertices, 2) as x and y in pixels, and
    whether it is that of a hole.
    """
    regions = []
    with reading(path, "a readable ImageScope annotation"):
        root = ElementTree.parse(path).getroot()
        parts = root.findall("{*}Annotation/{*}Regions")
        for region in root.iterfind("{*}Annotation/{*}Regions/{*}Region"):
            vertices = [vertex.attrib for vertex in region.iterfind("{*}Vertices/{*}Vertex")]
            places = [(float(vertex["X"]), float(vertex["Y"])) for vertex in vertices]
            regions.append((np.array(places).reshape(-1, 2), region.get("NegativeROA") == "1"))
    if not parts:
        raise DataError(
            f"{path} is XML of another schema than ImageScope's: its root is {root.tag}, and it has"
            " no Annotations/Annotation/Regions. Get it again."
        )
    if not all(np.isfinite(outline).all() for outline, _ in regions):
        raise DataError(f"{path} has a vertex that is no place. Get it again.")
    return regions


def read_outlines(path: Path, sides: tuple[int, int]) -> np.ndarray:
    """An instance map uint16 of `sides` from the outlines of an Aperio ImageScope XML file
    (`Annotation/Regions/Region/Vertices/Vertex` with X and Y in pixels), in any namespace.

    A pixel belongs to an outline that its centre lies in, and to the first of several, as in the
    script that came with MoNuSeg; what an outline that crosses itself encloses is told by the
    even-odd rule. ImageScope joins the last vertex to the first. A region with `NegativeROA="1"` is
    a hole, and background. One that encloses nothing, such as two vertices, is left out with a
    warning. Raises DataError for a file that cannot be read, or is of another schema, and if none
    of its regions has a pixel of the image.
    """
    from skimage.draw import polygon

    regions = _regions(path)
    objects, holes = np.zeros(sides, np.int64), np.zeros(sides, bool)
    empty = []
    for number, (outline, hole) in enumerate(regions, 1):
        if len(outline) < 3 or np.linalg.matrix_rank(outline - outline[0]) < 2:
            empty.append(str(number))
            continue
        rows, columns = polygon(outline[:, 1], outline[:, 0], sides)
        if hole:
            holes[rows, columns] = True
        else:
            free = objects[rows, columns] == 0
            objects[rows[free], columns[free]] = number
    objects[holes] = 0
    if regions and not objects.any():
        raise DataError(
            f"{path}: none of its {len(regions)} regions has a pixel of the image, of"
            f" {sides[0]} x {sides[1]}. Get both again."
        )
    if empty:
        warnings.warn(
            f"{path}: left out of {len(regions)} regions, since they enclose nothing: number"
            f" {', '.join(empty)}",
            stacklevel=2,
        )
    return numbered(objects, path)


def _from_text(path: Path) -> np.ndarray:
    numbers = np.array(path.read_text(encoding="ascii").split(), np.int64)
    width, height = numbers[:2]
    return numbers[2:].reshape(height, width)


def _from_picture(path: Path) -> np.ndarray:
    with opened(path, LOSSLESS) as image:
        return np.asarray(image)


FORMS = {
    ".mat": ("a MATLAB file with the array inst_map", lambda path: read_array(path, "inst_map")),
    ".txt": ("a width, a height and as many object numbers", _from_text),
}
"""What instance maps are and how they are read, by suffix."""
PICTURE = (f"a readable picture of object numbers ({', '.join(LOSSLESS)})", _from_picture)
"""The same of every other suffix."""


def read_objects(path: Path, sides: tuple[int, int]) -> np.ndarray:
    """The instance map uint16 of an image of `sides` (height, width), by the suffix of its file.

    `.xml` are outlines of ImageScope; `.mat` a MATLAB file with `inst_map`; `.txt` a width, a
    height and a number for each pixel, row by row; everything else a picture whose grey values are
    object numbers. Objects are numbered anew from 1. Raises DataError for a file that cannot be
    read, for a map of other sides than the image, and for what is no instance map.
    """
    suffix = path.suffix.lower()
    if suffix == ".xml":
        return read_outlines(path, sides)
    what, read = FORMS.get(suffix, PICTURE)
    with reading(path, what):
        objects = read(path)
    same_sides(path, objects, sides)
    numbers = whole_numbers(objects, path)
    _check_instances(path, numbers)
    return numbered(numbers, path)


def _check_instances(path: Path, objects: np.ndarray) -> None:
    """Raise DataError for a map of whole numbers that is none of objects: a mask, which has one
    number for all of them; a map of classes, which has a few; a picture, which has many for one; or
    one whose background is not 0.

    Of the maps of MoNuSeg, TNBC and DSB 2018 an object covers 8 % of its image at most, and all
    objects of an image have 1.01 parts on average at most.
    """
    from skimage.measure import label

    values, counts = np.unique(objects[objects != 0], return_counts=True)
    parts = int(label(objects, connectivity=2).max())
    if parts >= 2 * max(len(values), 1):
        raise DataError(
            f"{path} has {parts:,} separate parts of {len(values):,} numbers. An instance map has a"
            " number for each nucleus; this looks like a mask or a picture. Get the instance map."
        )
    if len(values) and 2 * counts.max() > objects.size:
        raise DataError(
            f"{path}: object {values[counts.argmax()]} covers more than half of the image. It looks"
            " like the background, which must be 0. Get the instance map."
        )


def same_sides(path: Path, mask: np.ndarray, sides: tuple[int, int]) -> None:
    """Raise DataError for a mask of another size than its image."""
    if mask.shape != sides:
        raise DataError(
            f"{path} has {' x '.join(map(str, mask.shape))} pixels, its image"
            f" {' x '.join(map(str, sides))}. Get both again."
        )


# -- MATLAB files of version 5, which versions 6 and 7 write too --

# In Python alone, since the readers in C trust what a damaged file says and end the process. The
# format is that of MathWorks' "MAT-File Format", chapter 1: a header of 128 bytes and then
# elements, each a kind, a length and so many bytes.

NUMBERS = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
"""NumPy's types by kind of element."""
MATRIX, COMPRESSED = 14, 15
CLASSES = range(6, 16)
"""Of arrays: those of numbers, which are not sparse."""
COMPLEX = 0x800
"""Of an array's flags."""
MOST_UNPACKED = 2**28
"""Bytes that a compressed array is unpacked to."""


def read_array(path: Path, name: str) -> np.ndarray:
    """The array called `name`, in the type that its numbers are stored in.

    Raises OSError, or ValueError for a file that is damaged, of another version, or without such an
    array of real numbers.
    """
    raw = path.read_bytes()
    if raw[124:128] != b"\0\1IM":
        raise ValueError("it is not of version 5, or is big-endian; save it with -v7 on a usual PC")
    for kind, content in _elements(raw[128:]):
        if kind == COMPRESSED:
            kind, content = next(_elements(_unpacked(content)), (0, b""))
        if kind != MATRIX:
            continue
        flags, sides, label, *values = islice(_elements(content), 4)
        if label[1].decode("latin1") == name:
            return _numbers(flags, sides, values)
    raise ValueError(f"it has no array {name}")


def _elements(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """The kind and the bytes of each element. Raises ValueError for one that is cut off."""
    at = 0
    while at < len(raw):
        if len(raw) - at < 8:
            raise ValueError("it is cut off")
        kind, length = struct.unpack_from("<2I", raw, at)
        start = at + 8
        if kind >> 16:  # a short one, whose bytes lie where others have their length
            kind, length, start = kind & 0xFFFF, kind >> 16, at + 4
        end = start + length
        if end > len(raw) or (start == at + 4 and length > 4):
            raise ValueError("it is cut off")
        yield kind, raw[start:end]
        at = end if kind == COMPRESSED else end + -end % 8


def _unpacked(packed: bytes) -> bytes:
    stream = zlib.decompressobj()
    try:
        raw = stream.decompress(packed, MOST_UNPACKED)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not stream.eof:
        raise ValueError(f"an array of it is cut off, or larger than {MOST_UNPACKED:,} bytes")
    return raw


def _numbers(
    flags: tuple[int, bytes], sides: tuple[int, bytes], values: list[tuple[int, bytes]]
) -> np.ndarray:
    """The values, whose first side varies fastest. Raises ValueError unless they fit."""
    word = int.from_bytes(flags[1][:4], "little")
    if word & 0xFF not in CLASSES or word & COMPLEX:
        raise ValueError("its array is not one of real numbers")
    if not values or values[0][0] not in NUMBERS or sides[0] != 5 or len(sides[1]) % 4:
        raise ValueError("its array is damaged")
    kind, content = values[0]
    shape = np.frombuffer(sides[1], "<i4").tolist()
    dtype = np.dtype("<" + NUMBERS[kind])
    if min(shape, default=-1) < 0 or math.prod(shape) * dtype.itemsize != len(content):
        raise ValueError(f"its array has {len(content):,} bytes for sides {shape}")
    return np.frombuffer(content, dtype).reshape(shape, order="F")


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


def read_index(folder: Path, column: str) -> list[dict[str, str]]:
    """The rows of `index.csv`, with an `id` and another column, in the order of the ids.

    Raises DataError for a table without the columns, and for an id that is there twice.
    """
    table = folder / "index.csv"
    rows = read_table(table, ("id", column))
    unrepeated(table, [row["id"] for row in rows])
    return sorted(rows, key=lambda row: row["id"])


def indexed(
    folder: Path, rows: Sequence[dict[str, str]], suffixes: Sequence[str] = (".png",)
) -> list[Path]:
    """`index.csv`, then `images/ID` with the first suffix that is there and `labels/ID.png` of each
    row. Raises DataError if any is missing.
    """
    wanted = [[folder / "index.csv"]]
    for row in rows:
        wanted.append([folder / "images" / f"{row['id']}{suffix}" for suffix in suffixes])
        wanted.append([folder / "labels" / f"{row['id']}.png"])
    return all_of(wanted)


def pairs_of(paths: Sequence[Path]) -> list[tuple[Path, Path]]:
    """Image and map of each row, of what `indexed` gives, or of the same without its index."""
    files = paths[len(paths) % 2 :]
    return [*zip(files[::2], files[1::2], strict=True)]
