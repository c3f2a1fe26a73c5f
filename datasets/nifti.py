"""Reads volumes from NIfTI-1 files in one part (`.nii`, `.nii.gz`), as numbers without a place in
space.

The header is that of https://nifti.nimh.nih.gov/pub/dist/src/niftilib/nifti1.h: 348 bytes with the
sides, the type of the numbers, where they begin, and a slope and an intercept. Orientation is not
read: sets whose volumes are registered, such as BraTS, do not need it.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np

from datasets.source import DataError

HEADER = 348
_TYPES = {
    2: "u1",
    4: "i2",
    8: "i4",
    16: "f4",
    64: "f8",
    256: "i1",
    512: "u2",
    768: "u4",
}
"""NumPy's name of NIfTI's types of numbers."""


def _parsed(content: bytes) -> np.ndarray:
    """Raises ValueError for what is no NIfTI-1 file of whole volumes."""
    if len(content) < HEADER:
        raise ValueError(f"it has only {len(content)} bytes")
    order = next((sign for sign in "<>" if np.frombuffer(content, f"{sign}i4", 1)[0] == HEADER), "")
    if not order or content[344:347] != b"n+1":
        raise ValueError("it is no NIfTI-1 file in one part")
    count, *sides = np.frombuffer(content, f"{order}i2", 8, 40).tolist()
    kind = int(np.frombuffer(content, f"{order}i2", 1, 70)[0])
    begin, slope, intercept = np.frombuffer(content, f"{order}f4", 3, 108).tolist()
    if kind not in _TYPES:
        raise ValueError(f"its numbers are of type {kind}")
    shape = sides[:count]
    while len(shape) > 3 and shape[-1] == 1:
        shape.pop()
    if not 1 <= count <= 7 or len(shape) != 3 or min(shape) < 1:
        raise ValueError(f"its sides are {' x '.join(map(str, sides[: max(count, 0)]))}")
    voxels = int(np.prod(shape))
    dtype = np.dtype(f"{order}{_TYPES[kind]}")
    if not HEADER <= begin <= len(content) - voxels * dtype.itemsize:
        raise ValueError("it ends before its last voxel")
    values = np.frombuffer(content, dtype, voxels, int(begin))
    volume = values.reshape(shape[::-1]).astype(dtype.newbyteorder("="), copy=False)
    if np.isfinite(slope) and slope != 0 and (slope, intercept) != (1, 0):
        volume = volume * np.float64(slope) + np.float64(intercept)
    return volume


def read_volume(path: Path) -> np.ndarray:
    """A volume (z, y, x) in the type that the file has, in float64 where it has a slope.

    Raises DataError for a file that cannot be read, is cut off or is not one volume.
    """
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return _parsed(content)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise DataError(
            f"{path} is not a readable NIfTI volume ({error}). Get it again."
        ) from error


def whole_numbers(path: Path, volume: np.ndarray) -> np.ndarray:
    """A volume as whole numbers int64. Raises DataError if it has values that are none."""
    if volume.dtype.kind == "f":
        rounded = np.rint(volume)
        if not np.array_equal(rounded, volume):
            raise DataError(f"{path} has values that are not whole numbers. Get it again.")
        volume = rounded
    return volume.astype(np.int64)
