"""MNIST and Fashion-MNIST: torchvision's layout (`MNIST/raw/*-ubyte`) or one `<name>.npz`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from datasets.source import DataError, DataSource, Split, read_npz

_IDX = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


def read_idx(path: Path) -> np.ndarray:
    """An IDX file of unsigned bytes (LeCun's format). Raises DataError if its length is not what it
    says.
    """
    raw = path.read_bytes()
    if len(raw) < 4 or raw[:3] != b"\x00\x00\x08":
        raise DataError(
            f"{path} is not an IDX file of unsigned bytes. Delete it and download it again."
        )
    dimensions = raw[3]
    if len(raw) < 4 + 4 * dimensions:
        raise DataError(f"{path} is truncated. Delete it and download it again.")
    shape = np.frombuffer(raw, ">i4", dimensions, 4)
    body = np.frombuffer(raw, np.uint8, offset=4 + 4 * dimensions)
    if body.size != int(np.prod(shape)):
        raise DataError(
            f"{path} is truncated: {body.size} bytes of {int(np.prod(shape))}. Delete it and"
            " download it again."
        )
    return body.reshape(shape)


def _files(name: str, folder: str) -> Callable[[Path], list[Path]]:
    def files(home: Path) -> list[Path]:
        npz = home / f"{name}.npz"
        if npz.exists():
            return [npz]
        official = [home / folder / "raw" / part for part in _IDX]
        return official if all(path.exists() for path in official) else []

    return files


def _loader(name: str, folder: str, how_to_get: str) -> Callable[[Path], dict[str, Split]]:
    def load(home: Path) -> dict[str, Split]:
        files = _files(name, folder)(home)
        if files[0].suffix == ".npz":
            return read_npz(files[0], how_to_get)
        images, labels, test_images, test_labels = (read_idx(path) for path in files)
        return {
            "train": Split(images[:, None], labels.astype(np.int64)),
            "test": Split(test_images[:, None], test_labels.astype(np.int64)),
        }

    return load


def _downloader(class_name: str) -> Callable[[Path], None]:
    def download(home: Path) -> None:
        import torchvision.datasets

        getattr(torchvision.datasets, class_name)(str(home), train=True, download=True)

    return download


def _source(
    name: str,
    class_name: str,
    title: str,
    mean: float,
    std: float,
    licence: str,
    content: dict[str, str],
) -> DataSource:
    how = (
        f"Run `python -m benchmarks data --download {name}`, or put {name}.npz into the data home."
    )
    return DataSource(
        name=name,
        title=title,
        classes=10,
        shape=(1, 28, 28),
        sizes={"train": 60_000, "test": 10_000},
        mean=(mean,),
        std=(std,),
        licence=licence,
        how_to_get=how,
        files=_files(name, class_name),
        load=_loader(name, class_name, how),
        download=_downloader(class_name),
        stand_ins=("digits",),
        embedded="digits",
        content=content,
    )


MNIST_CONTENT = {
    "train": "d18cfd466eb143ac1097fde604dba9eec4116885869d04cc648b510949f9e88c",
    "test": "a0863a96c44e5666edbb30c4071ee79ca0514c621e6349c5967fc78e7305c891",
}

SOURCES = [
    _source(
        "mnist",
        "MNIST",
        "MNIST",
        0.1307,
        0.3081,
        "CC BY-SA 3.0 (Yann LeCun and Corinna Cortes)",
        MNIST_CONTENT,
    ),
    _source(
        "fashion-mnist", "FashionMNIST", "Fashion-MNIST", 0.2860, 0.3530, "MIT (Zalando SE)", {}
    ),
]
