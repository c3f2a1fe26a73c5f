"""Opens PNG, JPEG and other picture files; damaged PNGs, which have checksums, are refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from datasets.source import DataError

if TYPE_CHECKING:
    from PIL import Image


@contextmanager
def opened(path: Path) -> Iterator[Image.Image]:
    """A picture. Where the format has checksums they are compared first, since decoders do without
    them and fill up what is missing.

    Raises OSError, ValueError or SyntaxError for a file that is damaged or no picture.
    """
    from PIL import Image  # takes long, and listing data sets needs none

    try:
        with Image.open(path) as image:
            image.verify()  # after which an image cannot be read
        with Image.open(path) as image:
            yield image
    except Image.DecompressionBombError as error:
        raise ValueError(str(error)) from error


def read_rgb(path: Path) -> np.ndarray:
    """An image uint8 (h, w, 3); opacity is dropped. Raises DataError if it cannot be read."""
    try:
        with opened(path) as image:
            return np.asarray(image.convert("RGB"))
    except (OSError, ValueError, SyntaxError) as error:
        raise DataError(f"{path} is not a readable image ({error}). Get it again.") from error
