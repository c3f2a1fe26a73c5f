"""CINIC-10: the official image folders `CINIC-10/{train,valid,test}/<class>/*.png`, 90,000 images
each.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np

from datasets.folders import in_part, inside, listed
from datasets.pictures import read_rgb
from datasets.source import DataError, DataSource, Split, said, to_nchw
from datasets.sources import cifar

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
SPLITS = ("train", "valid", "test")
EACH = 9_000
"""Images of a class in a split."""


def images_of(folder: Path) -> list[list[Path]]:
    """The images of each class of a split, in name order."""
    return [listed(folder / name, ".png") for name in CLASSES]


@inside("CINIC-10")
def _classes(folder: Path) -> list[list[Path]]:
    """The images of each class of each split in turn, or none. Raises DataError for some."""
    found = {
        folder / split / name: paths
        for split in SPLITS
        for name, paths in zip(CLASSES, images_of(folder / split), strict=True)
    }
    for place, paths in found.items():
        if any(found.values()) and len(paths) != EACH:
            raise in_part(f"{place} has {len(paths):,} of {EACH:,} images")
    return [*found.values()] if any(found.values()) else []


def read_split(classes: list[list[Path]]) -> Split:
    """Images and labels of one split, from the images of each class."""
    images, labels = [], []
    for label, paths in enumerate(classes):
        for path in paths:
            images.append(read_rgb(path))
            labels.append(label)
    if len({image.shape for image in images}) != 1:
        raise DataError("a split of CINIC-10 holds images of several sizes. Unpack CINIC-10 again.")
    return Split(to_nchw(np.stack(images)), np.asarray(labels, dtype=np.int64))


def _load(home: Path) -> dict[str, Split]:
    found, count = _classes(home), len(CLASSES)
    return {
        split: read_split(found[place * count : (place + 1) * count])
        for place, split in enumerate(SPLITS)
    }


def _cifar_halves(home: Path) -> dict[str, Split]:
    """CIFAR-10's training images as CINIC's train (even places) and valid (odd places) splits."""
    cifar10 = cifar.SOURCES[0].load(home)
    places = np.arange(len(cifar10["train"]))
    return {
        "train": cifar10["train"].taken(places[::2]),
        "valid": cifar10["train"].taken(places[1::2]),
        "test": cifar10["test"],
    }


SOURCES = [
    DataSource(
        **said("cinic10"),
        classes=10,
        shape=(3, 32, 32),
        sizes=dict.fromkeys(SPLITS, 90_000),
        mean=(0.4789, 0.4723, 0.4305),
        std=(0.2421, 0.2383, 0.2587),
        files=lambda home: [*itertools.chain(*_classes(home))],
        load=_load,
        stand_ins=("cinic10-cifar", "shapes-shifted"),
    ),
    replace(
        cifar.SOURCES[0],
        **said("cinic10-cifar"),
        sizes={"train": 25_000, "valid": 25_000, "test": 10_000},
        load=_cifar_halves,
        download=None,
        stand_ins=("shapes-shifted",),
    ),
]
