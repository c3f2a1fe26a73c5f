"""Reads volumes from NIfTI files (`.nii`, `.nii.gz`), as numbers without a place in space.

Orientation is not read: sets whose volumes are registered, such as BraTS, do not need it.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from datasets.source import DataError
from results.zips import MOST_PACKED


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Raises DataError that names `path` where nibabel cannot read it, or it is no single
    volume.
    """
    # Here, since commands that only tell what there is import every source.
    from nibabel.filebasedimages import ImageFileError
    from nibabel.spatialimages import HeaderDataError

    try:
        yield
    except (
        OSError,
        EOFError,
        zlib.error,
        ValueError,
        MemoryError,
        OverflowError,
        ImageFileError,
        HeaderDataError,
    ) as error:
        why = " ".join(str(error).split())
        raise DataError(f"{path} is not a readable NIfTI volume ({why}). Get it again.") from error


def read_volume(path: Path) -> np.ndarray:
    """A volume (z, y, x) in the type that the file has, in float64 where it has a slope.

    Raises DataError for a file that cannot be read, is cut off or is not one volume.
    """
    import nibabel

    with readable(path):
        data = nibabel.load(path).dataobj
        stated = math.prod(data.shape) * data.dtype.itemsize
        size = path.stat().st_size
        if stated > size * (1 if path.suffix == ".nii" else MOST_PACKED):
            raise ValueError(f"it says {stated:,} bytes of voxels, and has {size:,} bytes")
        values = np.asanyarray(data)
        while values.ndim > 3 and values.shape[-1] == 1:
            values = values[..., 0]
        if values.ndim != 3 or not values.size:
            raise ValueError(f"its sides are {' x '.join(map(str, values.shape))}")
        if values.dtype.kind not in "iuf":
            raise ValueError(f"its numbers are {values.dtype}, and so complex or colours")
        return values.T.astype(values.dtype.newbyteorder("="), copy=False)
