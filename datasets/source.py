"""What a data set is to the suite: a source with an official layout, classes, a licence and
stand-ins.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from results.files import DataError

REAL, SURROGATE, SYNTHETIC = "real", "surrogate", "synthetic"


@dataclass(frozen=True)
class Split:
    """Images uint8 (n, channels, height, width) and class labels int64 (n,)."""

    images: np.ndarray
    labels: np.ndarray

    def __post_init__(self) -> None:
        if (
            self.images.dtype != np.uint8
            or self.images.ndim != 4
            or len(self.images) != len(self.labels)
        ):
            raise DataError(
                f"expected uint8 images (n, c, h, w) and as many labels, got {self.images.dtype} "
                f"{self.images.shape} and {self.labels.shape}"
            )

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class DataSource:
    """One data set. `datasets/sources/*.py` lists them in `SOURCES`; that is all the registration
    there is.
    """

    name: str
    title: str
    classes: int
    shape: tuple[int, int, int]
    """Channels, height, width."""
    sizes: Mapping[str, int]
    """Images per split: train, test and, where the data set has one, valid."""
    mean: tuple[float, ...]
    """Per channel, of pixels in [0, 1]; inputs are normalised with it."""
    std: tuple[float, ...]
    licence: str
    how_to_get: str
    """One sentence for whoever lacks the files."""
    files: Callable[[Path], list[Path]]
    """The files under the data home that this set would be read from; empty if it is absent."""
    load: Callable[[Path], dict[str, Split]]
    """Read the splits from the data home."""
    download: Callable[[Path], None] | None = None
    """Fetch the official files into the data home, where the licence allows."""
    stand_ins: tuple[str, ...] = ()
    """Names of other sources to use when this one is absent, best first."""
    embedded: str = ""
    """The stand-in that needs no files at all, for the smoke profile; empty if this source itself
    needs none."""
    kind: str = REAL
    """`real`, `synthetic` for generated images, or `surrogate` for real ones that were changed to
    stand in for others."""
    note: str = ""
    content: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 by split of the official images and labels (see `content_digest`), where known."""


def content_digest(split: Split) -> str:
    """SHA-256 of a split's images (uint8, n c h w) and labels (as little-endian int64), whatever
    file they came in.
    """
    content = hashlib.sha256(np.ascontiguousarray(split.images).data)
    content.update(split.labels.astype("<i8").tobytes())
    return content.hexdigest()


def to_nchw(images: np.ndarray) -> np.ndarray:
    """uint8 (n, h, w) or (n, h, w, c) -> contiguous (n, c, h, w)."""
    return np.ascontiguousarray(
        images[:, None] if images.ndim == 3 else images.transpose(0, 3, 1, 2)
    )


def check_npz(path: Path, how_to_get: str) -> None:
    """Raise DataError unless `path` is a whole npz archive with the four Keras-style arrays."""
    wanted = {"x_train.npy", "y_train.npy", "x_test.npy", "y_test.npy"}
    try:
        with zipfile.ZipFile(path) as archive:
            missing = wanted - set(archive.namelist())
    except (zipfile.BadZipFile, OSError) as error:
        raise DataError(
            f"{path} is damaged or truncated ({error}). Delete it and get it again. {how_to_get}"
        ) from error
    if missing:
        names = ", ".join(sorted(name.removesuffix(".npy") for name in missing))
        raise DataError(f"{path} lacks the arrays {names}. {how_to_get}")


def read_npz(path: Path, how_to_get: str) -> dict[str, Split]:
    """Read x_train, y_train, x_test, y_test from `path`. Raises DataError if the file is not
    whole.
    """
    check_npz(path, how_to_get)
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {
                split: Split(
                    to_nchw(arrays[f"x_{split}"]), arrays[f"y_{split}"].reshape(-1).astype(np.int64)
                )
                for split in ("train", "test")
            }
    except (
        ValueError,
        OSError,
        zipfile.BadZipFile,
        EOFError,
        zlib.error,
        RuntimeError,
        AttributeError,
    ) as error:
        raise DataError(
            f"{path} is damaged ({error}). Delete it and get it again. {how_to_get}"
        ) from error
