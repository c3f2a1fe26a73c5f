"""ImageNet at 32 x 32 pixels (Chrabaszcz, Loshchilov, Hutter 2017, arXiv:1707.08819): the official
batches.

Ten training batches `train_data_batch_1` ... `train_data_batch_10` and `val_data`, the test split
here: pickles of a dictionary of `data` (n, 3072) uint8, red then green then blue, and `labels` from
1 to 1000; the training batches' `mean` is not read. The images are shuffled over the batches. The
release numbers its classes as the ILSVRC devkit's map_clsloc.txt does (1 kit fox, 2 English setter,
...); here they are in the order of their WordNet ids (0 tench, 1 goldfish, ...), as in an
ImageFolder, in torchvision and in timm, because FedSA's authors cut their ten blocks of 100 classes
in that order.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fedtables.datasets.folders import all_of, beside, whole
from fedtables.datasets.source import DataError, DataSource, Split, said
from fedtables.datasets.sources.cifar import read_batch

TRAIN_PARTS = tuple(f"train_data_batch_{number}" for number in range(1, 11))
TEST_PART = "val_data"
TRAIN, TEST, BOTH = "Imagenet32_train", "Imagenet32_val", "Imagenet32"
"""Where the two archives may be unpacked: each in a folder of its name, or both in one."""

_PLACES = Path(__file__).with_suffix(".txt").read_text()
WORDNET_PLACE = np.array(_PLACES.split(), np.int64)
"""The place of the release's classes 1 to 1000 among the thousand WordNet ids in ascending
order."""


def read_batches(paths: Sequence[Path], size: int) -> Split:
    """The `size` images of the batches `paths`, in order, with WordNet-ordered labels 0 to 999.

    One batch is held at a time beside the whole. Raises DataError if a batch is damaged, or the
    batches hold fewer or more images.
    """
    images, labels = np.empty((size, 3, 32, 32), np.uint8), np.empty(size, np.int64)
    filled = 0
    for path in paths:
        part, numbers = read_batch(path, "labels")
        if part.dtype != np.uint8 or numbers.shape != (len(part),) or not len(part):
            raise DataError(
                f"{path} holds {part.dtype} images {part.shape} and labels {numbers.shape}. Get it"
                " again."
            )
        if numbers.min() < 1 or numbers.max() > len(WORDNET_PLACE):
            raise DataError(
                f"{path} has labels {numbers.min()} to {numbers.max()}, expected 1 to 1000. Get it"
                " again."
            )
        end = filled + len(part)
        if end <= size:
            images[filled:end], labels[filled:end] = part, WORDNET_PLACE[numbers - 1]
        filled = end
    if filled != size:
        raise DataError(
            f"the batches in {paths[0].parent} hold {filled:,} images, expected {size:,}. Get them"
            " again."
        )
    return Split(images, labels)


def _files(home: Path) -> list[Path]:
    """The ten files and the one, or none. Raises DataError for some of them."""

    def files(folder: Path) -> list[Path]:
        both = folder.name.lower() == BOTH.lower()
        train, test = (folder if both else beside(home, folder, name) for name in (TRAIN, TEST))
        return all_of(
            [path] for path in (*(train / part for part in TRAIN_PARTS), test / TEST_PART)
        )

    return whole(home, (TRAIN, TEST, BOTH), files) or []


def data_source(train: int = 1_281_167, test: int = 50_000) -> DataSource:
    """The data set, of which `train` and `test` images are expected."""

    def load(home: Path) -> dict[str, Split]:
        parts = _files(home)
        return {"train": read_batches(parts[:-1], train), "test": read_batches(parts[-1:], test)}

    return DataSource(
        **said("imagenet32"),
        classes=len(WORDNET_PLACE),
        shape=(3, 32, 32),
        sizes={"train": train, "test": test},
        mean=(0.4811, 0.4575, 0.4079),  # the values in public use for this release
        std=(0.2604, 0.2532, 0.2682),
        files=_files,
        load=load,
        stand_ins=("cifar100", "cifar100-16", "caltech100", "shapes-100-shifted"),
    )


SOURCES = [data_source()]
