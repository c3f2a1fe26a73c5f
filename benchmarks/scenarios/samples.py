"""What scenarios read of data sets: labels, images and targets at the size that networks see, and
what identifies them.

While a run is planned without the files, data sets have their official sizes and no content.
"""

from __future__ import annotations

import numpy as np
import torch

from datasets import catalogue
from datasets.catalogue import ResolvedData
from datasets.source import CLASS, MAP, DataError, annotated, annotations_of
from federation.resizing import resize, sides_of
from federation.tasks.targets import resize_targets, targets_of
from results.files import digest

Size = int | tuple[int, ...]
"""Pixels of every side of a sample as networks see it, or of each."""


def official_labels(data: ResolvedData) -> dict[str, np.ndarray]:
    """Labels of every split; for planning without the files, those that the source states, or
    balanced labels of the official sizes.
    """
    source = catalogue.source(data.used)
    if data.digest:
        return {name: split.labels for name, split in catalogue.load(data.used).items()}
    return {
        name: np.array(source.class_labels.get(name, np.arange(size) % source.classes))
        for name, size in source.sizes.items()
    }


def images_of(
    data: ResolvedData, split: str, indices: np.ndarray, size: Size, device: str
) -> torch.Tensor:
    """Samples of a split as stored, (n, c, *sides), all sides of `size`, or those it lists."""
    if device == "meta":
        source = catalogue.source(data.used)
        shape = (len(indices), source.shape[0], *sides_of(size, len(source.shape) - 1))
        return torch.empty(shape, dtype=getattr(torch, source.dtype), device="meta")
    images = catalogue.load(data.used)[split].images[indices]
    return resize(torch.from_numpy(images), size).to(device)


def targets_at(
    data: ResolvedData, split: str, indices: np.ndarray, annotation: str, size: Size, device: str
) -> torch.Tensor:
    """Targets of a split's samples, of one annotation: classes int64 (n,), or of pixels (n, ...,
    *sides).
    """
    if annotation == CLASS:
        return torch.from_numpy(official_labels(data)[split][indices]).to(device)
    about = annotations_of(catalogue.source(data.used))[annotation]
    if device == "meta":
        channels, dtype = ([about.size], torch.float32) if about.kind == MAP else ([], torch.int64)
        sides = sides_of(size, len(catalogue.source(data.used).shape) - 1)
        return torch.empty((len(indices), *channels, *sides), dtype=dtype, device="meta")
    values = annotated(catalogue.load(data.used)[split], annotation)[indices]
    return resize_targets(targets_of(about, values), size).to(device)


def identity(
    data: ResolvedData, split: str, indices: np.ndarray, size: Size, *about: object
) -> str:
    """What identifies images of a split in stage keys; `about` says what else there is of them."""
    content = digest(np.ascontiguousarray(indices).astype("<i8").tobytes())
    return digest([data.used, data.digest, split, size, content, *about])


def names_of(text: str) -> dict[str, str]:
    """What a table's columns call data sets, by their names: `ixi-t1=i+fastmri-t1=f`. Raises
    DataError for anything else.
    """
    pairs = [pair.partition("=") for pair in filter(None, text.split("+"))]
    if not all(name and called for name, _, called in pairs):
        raise DataError(f"{text!r} is no list of names; write it as in ixi-t1=i+fastmri-t1=f")
    return {name: called for name, _, called in pairs}


def check_channels(target: ResolvedData, data: ResolvedData, what: str) -> None:
    """Raise DataError if images of `data`, which are the federation's `what`, have another number
    of channels than those of `target`.
    """
    if catalogue.source(data.used).shape[0] != catalogue.source(target.used).shape[0]:
        raise DataError(
            f"{what} images of {data.used} have another number of channels than those of"
            f" {target.used}"
        )
