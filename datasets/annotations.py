"""Several annotations of each image: what kinds there are, and the splits and sources that hold them.

Apart from `datasets/source.py`, so that the digests of the sets without such annotations are what they were.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from datasets.source import DataError, DataSource, Split

CLASS, SEGMENTS, MAP = "class", "segments", "map"
IGNORE = 255
"""The class of a pixel that nobody has labelled."""


@dataclass(frozen=True)
class Annotation:
    """What is known of every image of a set."""

    kind: str
    """`class` (one per image), `segments` (one class per pixel) or `map` (real values per pixel)."""
    size: int
    """Classes, or channels of a map."""
    meaning: str = ""
    """In words; of a map, what its values 0 and 255 stand for."""


@dataclass(frozen=True)
class AnnotatedSplit(Split):
    """A split with more annotations than the class, all uint8 and of the images' height and width.

    Segments (n, h, w) hold a class per pixel, 255 where there is none; maps (n, channels, h, w) hold values that are
    scaled to 0...255. `federation.tasks.targets_of` makes targets of them, of maps values in [0, 1].
    """

    annotations: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        count, _, *side = self.images.shape
        for name, array in self.annotations.items():
            if array.dtype != np.uint8 or len(array) != count or array.ndim not in (3, 4) or [*array.shape[-2:]] != side:
                raise DataError(
                    f"annotation {name!r}: expected uint8 (n, h, w) or (n, c, h, w) for images {self.images.shape}, "
                    f"got {array.dtype} {array.shape}"
                )


@dataclass(frozen=True)
class AnnotatedSource(DataSource):
    """A data set with more annotations of each image than its class; `load` gives an `AnnotatedSplit` of each split."""

    annotations: Mapping[str, Annotation] = field(default_factory=dict)
    """By name: those of every split, beside the class."""
    up_to: bool = False
    """Whether `sizes` are the most that is read of each split, since the folders may hold any part of the set."""


def annotations_of(source: DataSource) -> dict[str, Annotation]:
    """Everything that each image of a source is annotated with, by name.

    Of every source `class`, and `image`, the pixels themselves as a map: what an autoencoder gives back.
    """
    of_all = {"class": Annotation(CLASS, source.classes), "image": Annotation(MAP, source.shape[0], "the image itself")}
    return {**of_all, **(source.annotations if isinstance(source, AnnotatedSource) else {})}


def annotated(split: Split, name: str) -> np.ndarray:
    """The annotation called `name` of a split: class labels int64 (n,), segments uint8 (n, h, w), a map uint8 (n, c, h, w).

    Raises DataError if the split has none of that name.
    """
    if name == "class":
        return split.labels
    if name == "image":
        return split.images
    own = split.annotations if isinstance(split, AnnotatedSplit) else {}
    if name not in own:
        raise DataError(f"the images have no annotation {name!r}; they have {', '.join(['class', 'image', *own])}")
    return own[name]


def check_annotations(source: AnnotatedSource, split: Split) -> None:
    """Raise DataError unless the split has the annotations that the source states, in their shapes and classes."""
    for name, annotation in source.annotations.items():
        array = annotated(split, name)
        shape = (len(split), *source.shape[1:]) if annotation.kind == SEGMENTS else (len(split), annotation.size, *source.shape[1:])
        if array.shape != shape:
            raise DataError(f"{source.title}: annotation {name!r} has shape {array.shape}, expected {shape}")
        if annotation.kind == SEGMENTS and ((array >= annotation.size) & (array != IGNORE)).any():
            raise DataError(f"{source.title}: annotation {name!r} has classes beyond the {annotation.size} that there are")
