"""Cuts images with their instance maps into overlapping patches, for training on crops.

Sixteen patches of 256 pixels of every image of 1000 x 1000, four along each side, are what FedIOD's
released code prepares (Gong et al. 2024). Inference by sliding windows is MONAI's.
"""

from __future__ import annotations

import math

import numpy as np


def starts(length: int, size: int, count: int | None = None, step: int | None = None) -> list[int]:
    """Where patches of `size` pixels begin along a side of `length` pixels, ascending; together
    they cover it, the first at its beginning and the last at its end.

    `count` patches are spread evenly, to whole pixels. With `step` patches begin every so many
    pixels, and the last one ends with the side. With neither, as few as cover it are spread.
    Raises ValueError for a side shorter than a patch, for both, and for patches that would leave
    gaps.
    """
    if not 1 <= size <= length:
        raise ValueError(f"patches of {size} pixels do not fit into {length}")
    if count is not None and step is not None:
        raise ValueError("give a count or a step, not both")
    room = length - size
    if step is not None:
        if not 1 <= step <= size:
            raise ValueError(f"a step of {step} leaves gaps between patches of {size} pixels")
        return [*range(0, room, step), room]
    fewest = math.ceil(length / size)
    count = fewest if count is None else count
    if count < fewest:
        raise ValueError(f"{count} patches of {size} pixels do not cover {length}")
    if count == 1:
        return [0]
    return sorted({(2 * index * room + count - 1) // (2 * (count - 1)) for index in range(count)})


def positions(
    sides: tuple[int, int], size: int, count: int | None = None, step: int | None = None
) -> list[tuple[int, int]]:
    """Upper left corners (row, column) of the patches of an image of `sides` (height, width), row
    by row; `count` is along each side.
    """
    rows, columns = (starts(side, size, count, step) for side in sides)
    return [(row, column) for row in rows for column in columns]


def cut(array: np.ndarray, size: int, corners: list[tuple[int, int]]) -> np.ndarray:
    """Patches (p, ..., size, size) of an image (c, h, w) or an instance map (h, w), as a copy.

    An object that a patch cuts keeps its number; numbers of patches are not made anew.
    """
    return np.stack(
        [array[..., row : row + size, column : column + size] for row, column in corners]
    )
