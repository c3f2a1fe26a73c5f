"""Opens pictures of named formats: damaged PNGs, which have checksums, are refused, and so is what
a conversion to 8 bits would cut off.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fedtables.datasets.folders import reading

if TYPE_CHECKING:
    from PIL import Image

LOSSLESS = ("PNG", "TIFF", "BMP")
"""Formats in which labels keep their numbers."""
FORMATS = (*LOSSLESS, "JPEG")
"""All that are read. Of others Pillow has decoders that start further programs."""


@contextmanager
def opened(path: Path, formats: tuple[str, ...] = FORMATS) -> Iterator[Image.Image]:
    """A picture in one of the `formats`, whatever its suffix. Where the format has checksums they
    are compared first, since decoders do without them and fill up what is missing.

    Raises OSError, ValueError or SyntaxError for a file that is damaged or no such picture.
    """
    from PIL import Image, UnidentifiedImageError  # takes long; listing data sets needs none

    try:
        with Image.open(path, formats=formats) as image:
            image.verify()  # after which an image cannot be read
        with Image.open(path, formats=formats) as image:
            yield image
    except UnidentifiedImageError as error:
        raise ValueError(f"it is none of {', '.join(formats)}, or damaged") from error
    except Image.DecompressionBombError as error:
        raise ValueError(str(error)) from error


def converted(image: Image.Image, mode: str) -> np.ndarray:
    """The pixels in a mode of 8 bits, such as `L` or `RGB`. Raises ValueError for more bits, which
    Pillow would cut off.
    """
    if image.mode[0] in "IF":
        raise ValueError(f"its pixels have more than 8 bits (mode {image.mode})")
    return np.asarray(image.convert(mode))


def read_rgb(path: Path, formats: tuple[str, ...] = FORMATS) -> np.ndarray:
    """An image uint8 (h, w, 3); opacity is dropped. Raises DataError if it cannot be read."""
    with reading(path, "a readable image"), opened(path, formats) as image:
        return converted(image, "RGB")
