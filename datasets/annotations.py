"""Several annotations of each image: what kinds there are, and the splits and sources that hold
them.

Apart from `datasets/source.py`, which is all that the reader of a set without such annotations
needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from datasets.source import DataError, DataSource, Split

CLASS, SEGMENTS, MAP, FINDINGS, INSTANCES = "class", "segments", "map", "findings", "instances"
IGNORE = 255
"""The class of a pixel that nobody has labelled, and the value of a finding of which it is not
known whether it is present."""


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
class AnnotatedSplit(Split):
    """A split with more annotations than the class, those of pixels of the samples' sides.

    Segments uint8 (n, *sides) hold a class per pixel, 255 where there is none; maps (n, channels,
    *sides) hold values, float32 or scaled to uint8 0...255; findings uint8 (n, size) hold 1 for
    present, 0 for absent or not mentioned, 255 for uncertain or not known; instances uint16 (n,
    *sides) hold the number of an object per pixel, 1 to as many as the sample has, and 0 where none
    is.
    `federation.tasks.targets.targets_of` makes targets of them, of uint8 maps values in [0, 1].
    """

    annotations: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        count, _, *sides = self.images.shape
        for name, array in self.annotations.items():
            dense = array.ndim - len(sides) in (1, 2) and [*array.shape[-len(sides) :]] == sides
            a_map = dense and array.ndim == self.images.ndim
            right = array.dtype == np.uint8 or (
                dense and array.dtype == (np.float32 if a_map else np.uint16)
            )
            if not right or len(array) != count or not (array.ndim == 2 or dense):
                raise DataError(
                    f"annotation {name!r}: expected uint8 (n, *sides) or (n, c, *sides), which may"
                    " be float32, or, of findings, uint8 (n, size), or, of instances, uint16 (n,"
                    f" *sides) for samples {self.images.shape}, got {array.dtype} {array.shape}"
                )


@dataclass(frozen=True)
class AnnotatedSource(DataSource):
    """A data set with more annotations of each image than its class; `load` gives an
    `AnnotatedSplit` of each split.
    """

    annotations: Mapping[str, Annotation] = field(default_factory=dict)
    """By name: those of every split, beside the class."""
    up_to: bool = False
    """Whether `sizes` are the most that is read of each split, since the folders may hold any part
    of the set."""
    about: bool = False
    """Whether `sizes` are those that a paper states for a rule, such as slices with enough of a
    tumour, of which the files may give another number; loading does not check them."""


def annotations_of(source: DataSource) -> dict[str, Annotation]:
    """Everything that each image of a source is annotated with, by name.

    Of every source `class`, and `image`, the pixels themselves as a map: what an autoencoder gives
    back.
    """
    of_all = {
        "class": Annotation(CLASS, source.classes),
        "image": Annotation(MAP, source.shape[0], "the image itself"),
    }
    return {**of_all, **(source.annotations if isinstance(source, AnnotatedSource) else {})}


def annotated(split: Split, name: str) -> np.ndarray:
    """The annotation called `name` of a split: class labels int64 (n,), segments uint8 (n, *sides),
    a map uint8 or float32 (n, c, *sides), findings uint8 (n, size), instances uint16 (n, *sides).

    Raises DataError if the split has none of that name.
    """
    if name == "class":
        return split.labels
    if name == "image":
        return split.images
    annotations = split.annotations if isinstance(split, AnnotatedSplit) else {}
    if name not in annotations:
        raise DataError(
            f"the images have no annotation {name!r}; they have"
            f" {', '.join(['class', 'image', *annotations])}"
        )
    return annotations[name]


def check_annotations(source: AnnotatedSource, split: Split) -> None:
    """Raise DataError unless the split has the annotations that the source states, in their shapes,
    classes and values.
    """
    for name, annotation in source.annotations.items():
        array = annotated(split, name)
        channels, side = annotation.size, source.shape[1:]
        shape = (
            len(split),
            *{SEGMENTS: side, INSTANCES: side, FINDINGS: (channels,)}.get(
                annotation.kind, (channels, *side)
            ),
        )
        if array.shape != shape:
            raise DataError(
                f"{source.title}: annotation {name!r} has shape {array.shape}, expected {shape}"
            )
        if (array.dtype == np.uint16) != (annotation.kind == INSTANCES):
            raise DataError(
                f"{source.title}: annotation {name!r} of kind {annotation.kind} is {array.dtype};"
                " instances, and they alone, are uint16"
            )
        if annotation.kind == INSTANCES:
            for number, objects in enumerate(array):
                if not np.bincount(objects.reshape(-1))[1:].all():
                    raise DataError(
                        f"{source.title}: annotation {name!r} of sample {number} leaves out object"
                        f" numbers; they are 1 to {objects.max()}, of which all have pixels"
                    )
        if annotation.kind == SEGMENTS and ((array >= annotation.size) & (array != IGNORE)).any():
            raise DataError(
                f"{source.title}: annotation {name!r} has classes beyond the {annotation.size} that"
                " there are"
            )
        if annotation.kind == FINDINGS and ((array > 1) & (array != IGNORE)).any():
            raise DataError(
                f"{source.title}: annotation {name!r} has values other than 0, 1 and {IGNORE}"
            )
