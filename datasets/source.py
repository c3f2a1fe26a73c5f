"""What a data set is to the suite: splits of samples with their annotations, and a source with an
official layout, a licence and stand-ins.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedtables.datasets.npz import read_arrays
from fedtables.results.files import DataError

REAL, SURROGATE, SYNTHETIC = "real", "surrogate", "synthetic"
UNVERIFIED = "unverified"
"""Said of samples that are none of those whose digests are known (`datasets/verified.csv`)."""
CLASS, SEGMENTS, MAP, FINDINGS, INSTANCES = "class", "segments", "map", "findings", "instances"
IGNORE = 255
"""The class of a pixel that nobody has labelled, and the value of a finding of which it is not
known whether it is present."""
_IMAGES, _LABELS = "uint8 (n, h, w) or (n, h, w, c)", "whole numbers (n,)"
KERAS = {"x_train": _IMAGES, "y_train": _LABELS, "x_test": _IMAGES, "y_test": _LABELS}
"""The arrays of an npz file with images and labels, as Keras names them, and what they are."""
MOST_WHOLE = 2**53
"""Up to which float64 has every whole number."""
TEXTS: Mapping[str, Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("texts.toml").read_text(encoding="utf-8")
)


def said(key: str) -> dict[str, Any]:
    """What `texts.toml` says under a data set's name: name, title, licence, how to get it, note."""
    own = TEXTS[key]
    found: dict[str, Any] = {**(said(own["like"]) if "like" in own else {}), **own, "name": key}
    found.pop("like", None)
    return found


@dataclass(frozen=True)
class Annotation:
    """What is known of every image of a set."""

    kind: str
    """`class` (one per sample), `segments` (one class per pixel or voxel), `map` (real values per
    pixel or voxel), `findings` (any number of classes per sample) or `instances` (one object per
    pixel or voxel)."""
    size: int
    """Classes, channels of a map, or 1 for instances, of which a sample has any number."""
    meaning: str = ""
    """In words; of a uint8 map, what its values 0 and 255 stand for."""
    names: tuple[str, ...] = ()
    """Of findings, in the order of their columns, in lower case with hyphens."""

    def __post_init__(self) -> None:
        if self.kind == FINDINGS and len(set(self.names)) != self.size:
            raise ValueError(
                f"{self.size} findings need as many different names, got"
                f" {', '.join(self.names) or 'none'}"
            )
        if self.kind == INSTANCES and self.size != 1:
            raise ValueError(f"instances have size 1, not {self.size}")


@dataclass(frozen=True)
class Split:
    """Samples with a class label each: images (n, channels, height, width) or volumes (n, channels,
    depth, height, width), their sides in any ratio, and labels int64 (n,).

    Of uint8 samples 0 stands for 0 and 255 for 1; the values of float32 samples are what they are.
    Further annotations are of pixels of the samples' sides: segments uint8 (n, *sides) hold a class
    per pixel, 255 where there is none; maps (n, channels, *sides) hold values, float32 or scaled to
    uint8 0...255; instances uint16 (n, *sides) hold the number of an object per pixel, 1 to as many
    as the sample has, and 0 where none is. Findings uint8 (n, size) hold 1 for present, 0 for
    absent or not mentioned, 255 for uncertain or not known.
    `fedtables.federation.tasks.targets.targets_of` makes targets of them, of uint8 maps values in
    [0, 1]. Raises DataError for samples, labels or groups of other type or shape; annotations are
    checked when a source is loaded.
    """

    images: np.ndarray
    labels: np.ndarray
    annotations: Mapping[str, np.ndarray] = field(default_factory=dict)
    groups: np.ndarray | None = field(default=None, kw_only=True)
    """Whose each sample is (a patient, a volume, a writer), int64 (n,), the same number in every
    split; None where samples belong to nothing."""

    def __post_init__(self) -> None:
        if (
            self.images.dtype not in (np.uint8, np.float32)
            or self.images.ndim not in (4, 5)
            or self.labels.dtype.kind != "i"
            or self.labels.shape != self.images.shape[:1]
        ):
            raise DataError(
                "expected uint8 or float32 images (n, c, h, w) or volumes (n, c, d, h, w) and as"
                f" many whole labels, got {self.images.dtype} {self.images.shape} and"
                f" {self.labels.dtype} {self.labels.shape}"
            )
        count = len(self.images)
        if self.groups is not None and (
            self.groups.dtype != np.int64 or self.groups.shape != (count,)
        ):
            raise DataError(
                f"expected groups int64 ({count},), got {self.groups.dtype} {self.groups.shape}"
            )

    def __len__(self) -> int:
        return len(self.labels)

    def taken(self, rows: np.ndarray) -> Split:
        """The samples at these places, or those that a mask bool (n,) shows."""
        return Split(
            self.images[rows],
            self.labels[rows],
            {name: array[rows] for name, array in self.annotations.items()},
            groups=None if self.groups is None else self.groups[rows],
        )

    def divided(self, tested: np.ndarray) -> dict[str, Split]:
        """The splits `train` and `test`, bool (n,) says which samples are tested."""
        return {"train": self.taken(~tested), "test": self.taken(tested)}


@dataclass(frozen=True)
class DataSource:
    """One data set. `datasets/sources/*.py` lists them in `SOURCES`; that is all the registration
    there is.
    """

    name: str
    title: str
    classes: int
    shape: tuple[int, ...]
    """Channels and sides: height and width, or depth, height and width."""
    sizes: Mapping[str, int]
    """Images per split: train, test and, where the data set has one, valid."""
    mean: tuple[float, ...]
    """Per channel, of pixels in [0, 1] or of float32 values; inputs are normalised with it."""
    std: tuple[float, ...]
    licence: str
    how_to_get: str
    """One sentence for whoever lacks the files."""
    files: Callable[[Path], list[Path]]
    """The files under the data home that this set would be read from; empty if it is absent. Raises
    DataError if it is there in part: nothing stands in for it then."""
    load: Callable[[Path], dict[str, Split]]
    """Read the splits from the data home, those of `sizes`."""
    download: Callable[[Path], None] | None = None
    """Fetch the official files into the data home, where the licence allows."""
    stand_ins: tuple[str, ...] = ()
    """Names of other sources to use when this one is absent, best first. The last needs no files,
    and the smoke profile uses it."""
    reduced_from: str = ""
    """The set of which this one has every sample in the same order, with fewer pixels: no stand-in
    for it, but itself, where images are brought to no more pixels than it has."""
    kind: str = REAL
    """`real`, `synthetic` for generated images, or `surrogate` for real ones that were changed to
    stand in for others."""
    note: str = ""
    annotations: Mapping[str, Annotation] = field(default_factory=dict)
    """By name: those of every split, beside the class."""
    up_to: bool = False
    """Whether `sizes` are the most that is read of each split, since the folders may hold any part
    of the set."""
    about: bool = False
    """Whether `sizes` are those that a paper states for a rule, such as slices with enough of a
    tumour, of which the files may give another number; loading does not check them."""
    shared_groups: bool = False
    """Whether a group may have samples in several splits, as LEAF's writers do."""
    dtype: str = "uint8"
    """Of its samples: `uint8`, or `float32`, which are not rescaled."""
    class_names: tuple[str, ...] = ()
    """Of the classes, where a table names them."""
    class_labels: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """By split the class of every sample, where it is known without the files: what a plan takes,
    which otherwise has as many of each."""

    @property
    def embedded(self) -> str:
        """The stand-in that needs no files at all; empty if this source itself needs none."""
        return self.stand_ins[-1] if self.stand_ins else ""


def whole_numbers(values: np.ndarray, what: object) -> np.ndarray:
    """Labels, object numbers or voxels as whole numbers int64.

    Raises DataError, naming `what`, for text and complex numbers, fractions, infinities and numbers
    beyond 2^53, none of which a cast would tell.
    """
    if values.dtype.kind not in "biuf":
        raise DataError(
            f"{what} has values of type {values.dtype}, not whole numbers. Get it again."
        )
    exact = values.astype(np.float64, copy=False) if values.dtype.kind == "f" else values
    if not ((exact >= -MOST_WHOLE) & (exact <= MOST_WHOLE) & (np.rint(exact) == exact)).all():
        raise DataError(f"{what} has values that are not whole numbers up to 2^53. Get it again.")
    return exact.astype(np.int64)


def annotations_of(source: DataSource) -> dict[str, Annotation]:
    """Everything that each image of a source is annotated with, by name.

    Of every source `class`, and `image`, the pixels themselves as a map: what an autoencoder gives
    back.
    """
    of_all = {
        "class": Annotation(CLASS, source.classes),
        "image": Annotation(MAP, source.shape[0], "the image itself"),
    }
    return {**of_all, **source.annotations}


def annotated(split: Split, name: str) -> np.ndarray:
    """The annotation called `name` of a split: class labels int64 (n,), segments uint8 (n, *sides),
    a map uint8 or float32 (n, c, *sides), findings uint8 (n, size), instances uint16 (n, *sides).

    Raises DataError if the split has none of that name.
    """
    if name == "class":
        return split.labels
    if name == "image":
        return split.images
    if name not in split.annotations:
        raise DataError(
            f"the images have no annotation {name!r}; they have"
            f" {', '.join(['class', 'image', *split.annotations])}"
        )
    return split.annotations[name]


def to_nchw(images: np.ndarray) -> np.ndarray:
    """uint8 (n, h, w) or (n, h, w, c) -> contiguous (n, c, h, w). Raises DataError for others."""
    if images.ndim not in (3, 4):
        raise DataError(f"expected images (n, h, w) or (n, h, w, c), got {images.shape}")
    return np.ascontiguousarray(
        images[:, None] if images.ndim == 3 else images.transpose(0, 3, 1, 2)
    )


def read_npz(path: Path) -> dict[str, Split]:
    """Read x_train, y_train, x_test, y_test from `path`. Raises DataError if the file is not
    whole.
    """
    arrays = read_arrays(path, KERAS)
    return {
        split: Split(
            to_nchw(arrays[f"x_{split}"]),
            whole_numbers(arrays[f"y_{split}"].reshape(-1), f"{path}: y_{split}"),
        )
        for split in ("train", "test")
    }
