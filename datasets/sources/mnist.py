"""MNIST and Fashion-MNIST: one `<name>.npz`, or the four official files.

The files are those of torchvision's layout (`MNIST/raw/*-ubyte`), or lie in the folder `MNIST`
itself, packed (`.gz`) or not, and may be called `train-images.idx3-ubyte` as well. The folder may
be called `mnist`, `FashionMNIST` or `fashion-mnist` too.
"""

import gzip
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from fedtables.datasets.fetching import Download, fetch_all
from fedtables.datasets.folders import Spelling, all_of, inside, places, reading
from fedtables.datasets.source import DataError, DataSource, Split, read_npz, said

_IDX = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)

MOST = 10**8
"""Bytes that are read of a file, packed or not; the largest has 47 MB."""


def read_idx(path: Path) -> np.ndarray:
    """An IDX file of unsigned bytes (LeCun's format), or a gzip of one. Raises DataError if it
    cannot be read, or its length is not what it says.
    """
    with reading(path, "an IDX file of unsigned bytes"):
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as stream:
            raw = stream.read(MOST)
        if raw[:3] != b"\x00\x00\x08":
            raise ValueError("it does not begin as one")
        shape = np.frombuffer(raw, ">i4", raw[3], 4)
        body = np.frombuffer(raw, np.uint8, offset=4 + shape.nbytes)
        if body.size != int(np.prod(shape)):
            raise ValueError(f"it is truncated: {body.size} bytes of {int(np.prod(shape))}")
    return body.reshape(shape)


def _names(part: str) -> list[str]:
    """What a file is called, the best first."""
    spellings = (part, part.replace("-idx", ".idx"))
    return [spelling + packed for packed in ("", ".gz") for spelling in spellings]


def _source(name: str, folder: str, mirror: str, hashes: Sequence[str]) -> DataSource:
    archives = [
        Download(f"{mirror}/{part}.gz", sha256) for part, sha256 in zip(_IDX, hashes, strict=True)
    ]
    text = said(name)

    @inside(*(place for own in (folder, name) for place in (f"{own}/raw", own)))
    def official(place: Path) -> list[Path]:
        return all_of([[place / spelling for spelling in _names(part)] for part in _IDX])

    def files(home: Path) -> list[Path]:
        found = places(home, f"{name}.npz")[:1] or official(home)
        loose = (home / spelling for part in _IDX for spelling in _names(part))
        if not found and (stray := next(filter(None, map(Spelling().find, loose)), None)):
            raise DataError(
                f"{stray} may be of MNIST or of Fashion-MNIST. Move it to {home / folder / 'raw'},"
                f" if it is of {text['title']}, or else to the other's."
            )
        return found

    def load(home: Path) -> dict[str, Split]:
        paths = files(home)
        if paths[0].suffix.lower() == ".npz":
            return read_npz(paths[0])
        images, labels, test_images, test_labels = map(read_idx, paths)
        return {
            "train": Split(images[:, None], labels.astype(np.int64)),
            "test": Split(test_images[:, None], test_labels.astype(np.int64)),
        }

    return DataSource(
        **text,
        classes=10,
        shape=(1, 28, 28),
        sizes={"train": 60_000, "test": 10_000},
        mean=(0.1307,),
        std=(0.3081,),
        files=files,
        load=load,
        download=lambda home: fetch_all(archives, home / folder / "raw"),
        stand_ins=("digits",),
    )


_FASHION = _source(
    "fashion-mnist",
    "FashionMNIST",
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
    (
        "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    ),
)
SOURCES = [
    _source(
        "mnist",
        "MNIST",
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        (
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    ),
    replace(_FASHION, mean=(0.2860,), std=(0.3530,)),
]
