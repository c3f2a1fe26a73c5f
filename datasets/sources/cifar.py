"""CIFAR-10 and CIFAR-100: torchvision's layout (`cifar-10-batches-py/`) or one `<name>.npz`.

`cifar100-16` is CIFAR-100 with every pixel the mean of 2 x 2, in the same order.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from datasets.fetching import Download, fetch_all
from datasets.folders import all_of, one_file, places, whole
from datasets.source import DataError, DataSource, Split, read_npz, whole_numbers

SIZES = {"train": 50_000, "test": 10_000}
MEAN_100, STD_100 = (0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)
LICENCE = (
    "none stated by the authors; cite Krizhevsky, Learning Multiple Layers of Features from Tiny"
    " Images, 2009"
)
REDUCED = "cifar100_16.npz"
HOW_16 = (
    f"Put {REDUCED} into the data home: CIFAR-100 in its official order, every pixel the mean of"
    " 2 x 2."
)
NUMBERS = {
    *("|i1", "|u1"),
    *(f"{order}{name}" for order in "<>" for name in ("i2", "i4", "i8", "u2", "u4", "f4", "f8")),
}
"""NumPy's types of the arrays that batches hold or may hold."""


class _Dtype:
    """What a pickle says of the type of an array's numbers, as text: NumPy's own would take any
    state that a file gives it, and with some ends the process.
    """

    def __init__(self, name: str, *_: object):
        self.name, self.order = name, "|"

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = state[1]


class _Array:
    """An array as a pickle has it, whose content follows as its state."""

    values = np.empty(0, np.uint8)

    def __init__(self, *_: object):
        pass

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Raises ValueError unless it is one of plain numbers, in as many bytes as they take."""
        _, shape, dtype, by_column, content = state
        if not isinstance(dtype, _Dtype) or f"{dtype.order}{dtype.name}" not in NUMBERS:
            raise ValueError("it has an array of other things than numbers")
        raw = content.encode("latin1") if isinstance(content, str) else content
        numbers = np.frombuffer(raw, f"{dtype.order}{dtype.name}")
        self.values = numbers.reshape(shape, order="F" if by_column else "C")


def _bytes(text: str, encoding: str) -> bytes:
    """How Python 3 writes bytes in an old pickle. Raises ValueError for another encoding."""
    if encoding != "latin1":
        raise ValueError(f"it asks for the encoding {encoding}, which no CIFAR file needs")
    return text.encode("latin1")


class _ArrayUnpickler(pickle.Unpickler):
    """Reads the official batches, which are pickles, and refuses everything but plain values and
    arrays of numbers. Nothing that it makes of a file is an object of NumPy's.
    """

    ALLOWED: ClassVar[dict[tuple[str, str], Any]] = {
        ("numpy.core.multiarray", "_reconstruct"): _Array,
        ("numpy._core.multiarray", "_reconstruct"): _Array,
        ("numpy", "ndarray"): "numpy.ndarray",  # an argument of the above, and not to be called
        ("numpy", "dtype"): _Dtype,
        ("_codecs", "encode"): _bytes,
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no CIFAR file needs")
        return self.ALLOWED[module, name]


def _check_sizes(pickled: bytes) -> None:
    """Raise ValueError if a pickle asks for more memory than a file of its size can need: by a
    length that it does not have, or a memo that it does not fill.
    """
    for count, (opcode, argument, _) in enumerate(pickletools.genops(pickled)):
        if opcode.name in ("LONG_BINPUT", "PUT") and int(argument or 0) > count:
            raise ValueError(f"it asks for a memo of {argument:,} objects, after {count:,}")


def read_batch(path: Path, label_key: str) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, 3, 32, 32) and labels of one official batch. Raises DataError if it is damaged or
    not one.
    """
    try:
        pickled = path.read_bytes()
        _check_sizes(pickled)
        batch = _ArrayUnpickler(io.BytesIO(pickled), encoding="latin1").load()
        labels = batch[label_key]
        if isinstance(labels, list) and not all(isinstance(label, int) for label in labels):
            raise ValueError(f"its {label_key} are not all whole numbers")
        numbers = np.array(labels, np.int64) if isinstance(labels, list) else labels.values
        return batch["data"].values.reshape(-1, 3, 32, 32), whole_numbers(
            numbers, f"{path}: {label_key}"
        )
    except (
        pickle.UnpicklingError,
        EOFError,
        LookupError,
        AttributeError,
        ValueError,
        TypeError,
        MemoryError,
        OverflowError,
        RecursionError,
        OSError,
    ) as error:
        raise DataError(
            f"{path} is not a whole CIFAR batch: {error}. Delete it and download it again."
        ) from error


_reduced_files = one_file(REDUCED)


def _source(
    name: str,
    title: str,
    classes: int,
    folder: str,
    parts: tuple[str, ...],
    label_key: str,
    mean: tuple[float, ...],
    std: tuple[float, ...],
    stand_ins: tuple[str, ...],
    sha256: str,
) -> DataSource:
    how = (
        f"Run `python -m benchmarks data --download {name}`, or put {name}.npz into the data home."
    )
    archive = f"{name.replace('cifar', 'cifar-')}-python"

    def official(place: Path) -> list[Path]:
        return all_of(title, [[place / part] for part in parts], how)

    def files(home: Path) -> list[Path]:
        npz = places(home, f"{name}.npz")[:1]
        return npz or whole(title, home, (folder, archive), official, how) or []

    def load(home: Path) -> dict[str, Split]:
        paths = files(home)
        if paths[0].suffix.lower() == ".npz":
            return read_npz(paths[0], how)
        *train, test = (read_batch(path, label_key) for path in paths)
        images, labels = (np.concatenate(part) for part in zip(*train, strict=True))
        return {"train": Split(images, labels), "test": Split(*test)}

    packed = Download(
        f"https://www.cs.toronto.edu/~kriz/{archive}.tar.gz",
        sha256,
        tuple(f"{folder}/{part}" for part in parts),
    )

    return DataSource(
        name=name,
        title=title,
        classes=classes,
        shape=(3, 32, 32),
        sizes=SIZES,
        mean=mean,
        std=std,
        licence=LICENCE,
        how_to_get=how,
        files=files,
        load=load,
        download=lambda home: fetch_all([packed], home),
        stand_ins=stand_ins,
    )


SOURCES = [
    _source(
        "cifar10",
        "CIFAR-10",
        10,
        "cifar-10-batches-py",
        (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"),
        "labels",
        (0.4914, 0.4822, 0.4465),
        (0.2470, 0.2435, 0.2616),
        ("shapes",),
        "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
    ),
    _source(
        "cifar100",
        "CIFAR-100",
        100,
        "cifar-100-python",
        ("train", "test"),
        "fine_labels",
        MEAN_100,
        STD_100,
        ("cifar100-16", "caltech100", "shapes-100"),
        "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
    ),
    DataSource(
        name="cifar100-16",
        title="CIFAR-100 at 16 x 16 pixels",
        classes=100,
        shape=(3, 16, 16),
        sizes=SIZES,
        mean=MEAN_100,
        std=STD_100,
        licence=LICENCE,
        how_to_get=HOW_16,
        files=_reduced_files,
        load=lambda home: read_npz(_reduced_files(home)[0], HOW_16),
        stand_ins=("shapes-100",),
        reduced_from="cifar100",
    ),
]
