"""Brain volumes in NIfTI files, and slices of them at one size, of one sequence: what
reconstruction is learnt from.

Volumes are read as numbers without a place in space (`.nii`, `.nii.gz`): sets whose volumes are
registered, such as BraTS, need no orientation. For reconstruction a volume is scaled so that its
greatest value is 255, which keeps its slices comparable, and its slices are padded with black and
cropped around their middle to 256 x 256 pixels (FedAD, section 4.3.2). Rounding to whole numbers
alone would give a PSNR of 59 dB.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from fedtables.datasets.folders import reading
from fedtables.datasets.source import DataError, Split, said
from fedtables.results.zips import MOST_PACKED

VOLUME = "a readable NIfTI volume"
SIDE = 256
"""Pixels of a slice's width and height."""
DIMMEST = 0.01
"""Share of the values above 0 that must stay above 0 as bytes."""


def read_volume(path: Path) -> np.ndarray:
    """A volume (z, y, x) in the type that the file has, in float64 where it has a slope.

    Raises DataError for a file that cannot be read, is cut off or is not one volume.
    """
    import nibabel  # here, since commands that only tell what there is import every source

    with reading(path, VOLUME):
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


def fitted(slices: np.ndarray, side: int = SIDE) -> np.ndarray:
    """Slices (n, h, w) as (n, side, side): padded with 0 or cropped, around their middle."""
    for axis in (1, 2):
        size = slices.shape[axis]
        lack, first = max(0, side - size), max(0, size - side) // 2
        widths = [(0, 0)] * 3
        widths[axis] = (lack // 2, lack - lack // 2)
        slices = np.pad(slices, widths).take(np.arange(first, first + side), axis=axis)
    return slices


def as_bytes(volume: np.ndarray) -> np.ndarray:
    """A volume of any numbers as uint8: 0 and less is 0, the greatest value 255."""
    top = float(volume.max(initial=0))
    if not top > 0:
        return np.zeros(volume.shape, np.uint8)
    return np.rint(volume.astype(np.float64).clip(0) * (255 / top)).astype(np.uint8)


def _scaled(path: Path, volume: np.ndarray) -> np.ndarray:
    """`as_bytes` of a file's volume. Raises DataError for values that are no numbers, and for one
    of which nearly all turns black, since a few values are far beyond the others.
    """
    if not np.isfinite(volume).all():
        raise DataError(f"{path} has values that are no numbers. Get it again.")
    scaled = as_bytes(volume)
    signal = np.count_nonzero(volume > 0)
    if np.count_nonzero(scaled) < DIMMEST * signal:
        raise DataError(
            f"{path} has values up to {volume.max():g}, so far beyond the others that"
            f" {signal - np.count_nonzero(scaled):,} of {signal:,} turn black. Get it again."
        )
    return scaled


def splits_of(
    subjects: Mapping[str, Sequence[Path]], read: Callable[[Path], np.ndarray]
) -> dict[str, Split]:
    """A split of the slices of each list of subjects' files; a group is a subject, counted through.

    `read` gives the slices (n, h, w) of a file. Raises DataError for a split without a slice and
    for values that are no numbers.
    """

    def fit(path: Path) -> np.ndarray:
        return fitted(_scaled(path, read(path)))

    splits: dict[str, Split] = {}
    first = 0
    for name, paths in subjects.items():
        with ThreadPoolExecutor(4) as pool:
            parts = list(pool.map(fit, paths))
        if not sum(map(len, parts)):
            raise DataError(f"there is no slice in the split {name!r}")
        groups = np.repeat(np.arange(first, first + len(paths)), [len(part) for part in parts])
        images = np.concatenate(parts)[:, None]
        splits[name] = Split(
            images, np.zeros(len(images), np.int64), groups=groups.astype(np.int64)
        )
        first += len(paths)
    return splits


def slices(text: str, name: str, title: str, side: int = SIDE) -> dict[str, Any]:
    """What sets of grey slices have in common, whose sizes are those that a paper states, or about
    as many; `text` is what `said` says of several of them.
    """
    return said(text) | {
        "name": name,
        "title": title,
        "classes": 1,
        "shape": (1, side, side),
        "mean": (0.0,),
        "std": (1.0,),
        "about": True,
    }
