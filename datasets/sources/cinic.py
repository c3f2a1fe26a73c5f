"""CINIC-10: the official image folders `CINIC-10/{train,valid,test}/<class>/*.png`, 90,000 images
each.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from datasets.folders import in_part, listed, whole
from datasets.pictures import read_rgb
from datasets.source import DataError, DataSource, Split, to_nchw
from datasets.sources import cifar

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
SPLITS = ("train", "valid", "test")
_HOW = (
    "Download CINIC-10.tar.gz (Darlow et al. 2018) from"
    " https://datashare.ed.ac.uk/handle/10283/3192 and unpack it into the data home as CINIC-10/."
)


EACH = 9_000
"""Images of a class in a split."""


def images_of(folder: Path) -> list[list[Path]]:
    """The images of each class of a split, in name order."""
    return [listed(folder / name, ".png") for name in CLASSES]


def _splits(home: Path) -> dict[str, list[list[Path]]]:
    """The images of each split by class, or none. Raises DataError for some of them."""

    def read(folder: Path) -> dict[str, list[list[Path]]]:
        found = {split: images_of(folder / split) for split in SPLITS}
        counts = {
            f"{split}/{name}": len(paths)
            for split, classes in found.items()
            for name, paths in zip(CLASSES, classes, strict=True)
        }
        if not any(counts.values()):
            return {}
        for place, count in counts.items():
            if count != EACH:
                raise in_part(f"{folder / place} has {count:,} of {EACH:,} images", _HOW)
        return found

    return whole("CINIC-10", home, ["CINIC-10"], read, _HOW) or {}


def _files(home: Path) -> list[Path]:
    return [path for classes in _splits(home).values() for paths in classes for path in paths]


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
    return {split: read_split(classes) for split, classes in _splits(home).items()}


def _cifar_halves(home: Path) -> dict[str, Split]:
    """CIFAR-10's training images as CINIC's train (even places) and valid (odd places) splits."""
    cifar10 = cifar.SOURCES[0].load(home)
    train = cifar10["train"]
    return {
        "train": Split(train.images[::2], train.labels[::2]),
        "valid": Split(train.images[1::2], train.labels[1::2]),
        "test": cifar10["test"],
    }


SOURCES = [
    DataSource(
        name="cinic10",
        title="CINIC-10",
        classes=10,
        shape=(3, 32, 32),
        sizes=dict.fromkeys(SPLITS, 90_000),
        mean=(0.4789, 0.4723, 0.4305),
        std=(0.2421, 0.2383, 0.2587),
        licence="MIT for the collection; images from CIFAR-10 and ImageNet under their own terms",
        how_to_get=_HOW,
        files=_files,
        load=_load,
        stand_ins=("cinic10-cifar", "shapes-shifted"),
    ),
    DataSource(
        name="cinic10-cifar",
        title="CIFAR-10 halves",
        classes=10,
        shape=(3, 32, 32),
        sizes={"train": 25_000, "valid": 25_000, "test": 10_000},
        mean=cifar.SOURCES[0].mean,
        std=cifar.SOURCES[0].std,
        licence=cifar.SOURCES[0].licence,
        how_to_get=cifar.SOURCES[0].how_to_get,
        files=cifar.SOURCES[0].files,
        load=_cifar_halves,
        stand_ins=("shapes-shifted",),
        note="CIFAR-10's training images halved into pool and public set; no ImageNet images",
    ),
]
