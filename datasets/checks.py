"""Whether what a reader gives is what its data set says of itself."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from datasets.source import (
    FINDINGS,
    IGNORE,
    INSTANCES,
    SEGMENTS,
    Annotation,
    DataError,
    DataSource,
    Split,
    annotated,
)


def check_splits(entry: DataSource, splits: Mapping[str, Split]) -> None:
    """Raise DataError unless the splits are as the source says."""
    missing = [split for split in entry.sizes if split not in splits]
    if missing:
        raise DataError(f"{entry.title}: its reader gives no split {missing[0]!r}")
    check_groups(entry.title, splits)
    for split, stated in entry.sizes.items():
        samples = splits[split]
        size = len(samples) if entry.about else stated
        size = min(size, len(samples)) if entry.up_to else size
        if (
            samples.images.shape != (size, *entry.shape)
            or not 0 <= samples.labels.min() <= samples.labels.max() < entry.classes
        ):
            raise DataError(
                f"{entry.title}: images {samples.images.shape}, labels {samples.labels.min()} to"
                f" {samples.labels.max()} in split {split!r}, expected {(size, *entry.shape)} with"
                f" {entry.classes} classes. The files are not the official ones."
            )
        if samples.images.dtype != entry.dtype:
            raise DataError(
                f"{entry.title}: samples are {samples.images.dtype} in split {split!r}, expected"
                f" {entry.dtype}."
            )
        check_annotations(entry, samples)


def check_groups(title: str, splits: Mapping[str, Split]) -> None:
    """Raise DataError if a group has samples in two of the splits."""
    seen: dict[int, str] = {}
    for name, split in splits.items():
        for group in [] if split.groups is None else np.unique(split.groups).tolist():
            if group in seen:
                raise DataError(
                    f"{title}: group {group} has samples in the splits {seen[group]!r} and {name!r}"
                )
            seen[group] = name


def check_annotations(entry: DataSource, split: Split) -> None:
    """Raise DataError unless the split has the annotations that the source states, in their shapes,
    classes and values.
    """
    for name, annotation in entry.annotations.items():
        if fault := _fault(annotation, annotated(split, name), split.images.shape):
            raise DataError(f"{entry.title}: annotation {name!r} {fault}")


def _fault(annotation: Annotation, array: np.ndarray, samples: tuple[int, ...]) -> str:
    """What is wrong with an annotation of samples of this shape; empty if nothing is."""
    kind, size, (count, _, *sides) = annotation.kind, annotation.size, samples
    own = {SEGMENTS: sides, INSTANCES: sides, FINDINGS: [size]}.get(kind, [size, *sides])
    if array.shape != (count, *own):
        return f"has shape {array.shape}, expected {(count, *own)}"
    if (array.dtype == np.uint16) != (kind == INSTANCES):
        return f"of kind {kind} is {array.dtype}; instances, and they alone, are uint16"
    if kind == INSTANCES:
        for number, objects in enumerate(array):
            if not np.bincount(objects.reshape(-1))[1:].all():
                return (
                    f"of sample {number} leaves out object numbers; they are 1 to {objects.max()},"
                    " of which all have pixels"
                )
    if kind == SEGMENTS and ((array >= size) & (array != IGNORE)).any():
        return f"has classes beyond the {size} that there are"
    if kind == FINDINGS and ((array > 1) & (array != IGNORE)).any():
        return f"has values other than 0, 1 and {IGNORE}"
    return ""
