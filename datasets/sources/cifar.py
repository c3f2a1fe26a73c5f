"""CIFAR-10 and CIFAR-100, of torchvision's layout (`cifar-10-batches-py/`) or one `<name>.npz`; and
Caltech-101, of one `caltech100_32.npz`.

`cifar100-16` is CIFAR-100 with every pixel the mean of 2 x 2, in the same order. `cifar100-grey` is
the luminance of that, a public set of another domain for target tasks in grey. `caltech100` is
Caltech-101 at 32 x 32 pixels, its 100 object classes: real images in CIFAR-100's place. Classes are
uneven (31 to 800 images). There is no official version of this size, hence no official digest of
content. CINIC-10 is the official image folders
`CINIC-10/{train,valid,test}/<class>/*.png`, 90,000 images each.
"""

import io
import itertools
import pickle
import pickletools
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fedtables.datasets.fetching import Download, fetch_all
from fedtables.datasets.folders import all_of, in_part, inside, listed, one_file, places, reading
from fedtables.datasets.pictures import read_rgb
from fedtables.datasets.source import (
    DataError,
    DataSource,
    Split,
    read_npz,
    said,
    to_nchw,
    whole_numbers,
)

SMALL = 16
LUMINANCE = (299, 587, 114)
"""Thousandths of red, green and blue (ITU-R BT.601)."""
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
    with reading(path, "a whole batch of pickled images"):
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


# -- in grey --


def luminance(images: np.ndarray) -> np.ndarray:
    """Colour images uint8 (n, 3, h, w) in grey, uint8 (n, 1, h, w): in whole numbers, so that no
    processor rounds a half in its own way.
    """
    weights = np.array(LUMINANCE, np.int32)[:, None, None]
    thousandths = (images * weights).sum(axis=1, keepdims=True, dtype=np.int32)
    return ((thousandths + 500) // 1000).astype(np.uint8)


def halved(images: np.ndarray) -> np.ndarray:
    """The means of 2 x 2 pixels, uint8 (n, c, h, w) to (n, c, h / 2, w / 2)."""
    n, channels, height, width = images.shape
    parts = images.reshape(n, channels, height // 2, 2, width // 2, 2)
    return np.rint(parts.mean(axis=(3, 5), dtype=np.float32)).astype(np.uint8)


def _in_grey(split: Split) -> Split:
    small = split.images if split.images.shape[-1] == SMALL else halved(split.images)
    return Split(luminance(small), split.labels)


# -- sets --


def _source(
    name: str, classes: int, folder: str, parts: tuple[str, ...], label_key: str, sha256: str
) -> DataSource:
    archive = f"{name.replace('cifar', 'cifar-')}-python"
    packed = Download(
        f"https://www.cs.toronto.edu/~kriz/{archive}.tar.gz",
        sha256,
        tuple(f"{folder}/{part}" for part in parts),
    )

    @inside(folder, archive)
    def official(place: Path) -> list[Path]:
        return all_of([[place / part] for part in parts])

    def files(home: Path) -> list[Path]:
        return places(home, f"{name}.npz")[:1] or official(home)

    def load(home: Path) -> dict[str, Split]:
        paths = files(home)
        if paths[0].suffix.lower() == ".npz":
            return read_npz(paths[0])
        *train, test = (read_batch(path, label_key) for path in paths)
        images, labels = (np.concatenate(part) for part in zip(*train, strict=True))
        return {"train": Split(images, labels), "test": Split(*test)}

    return DataSource(
        **said(name),
        classes=classes,
        shape=(3, 32, 32),
        sizes={"train": 50_000, "test": 10_000},
        mean=(0.5071, 0.4865, 0.4409),
        std=(0.2673, 0.2564, 0.2762),
        files=files,
        load=load,
        download=lambda home: fetch_all([packed], home),
        stand_ins=("cifar100-16", "caltech100", "shapes-100"),
    )


_TEN = replace(
    _source(
        "cifar10",
        10,
        "cifar-10-batches-py",
        (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"),
        "labels",
        "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
    ),
    mean=(0.4914, 0.4822, 0.4465),
    std=(0.2470, 0.2435, 0.2616),
    stand_ins=("shapes",),
)
_HUNDRED = _source(
    "cifar100",
    100,
    "cifar-100-python",
    ("train", "test"),
    "fine_labels",
    "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
)
_reduced_files = one_file("cifar100_16.npz")
_REDUCED = replace(
    _HUNDRED,
    **said("cifar100-16"),
    shape=(3, SMALL, SMALL),
    files=_reduced_files,
    load=lambda home: read_npz(_reduced_files(home)[0]),
    download=None,
    stand_ins=("shapes-100",),
    reduced_from="cifar100",
)


def _load_grey(home: Path) -> dict[str, Split]:
    source = _HUNDRED if _HUNDRED.files(home) else _REDUCED
    return {name: _in_grey(split) for name, split in source.load(home).items()}


# -- CINIC-10 --

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
SPLITS = ("train", "valid", "test")
EACH = 9_000
"""Images of a class in a split."""


@inside("CINIC-10")
def _images(folder: Path) -> list[Path]:
    """The images of each class of each split in turn, or none. Raises DataError for some."""
    places = [folder / split / name for split in SPLITS for name in CLASSES]
    found = {place: listed(place, ".png") for place in places}
    for place, paths in found.items():
        if any(found.values()) and len(paths) != EACH:
            raise in_part(f"{place} has {len(paths):,} of {EACH:,} images")
    return [*itertools.chain(*found.values())]


def _load_cinic(home: Path) -> dict[str, Split]:
    paths, each = _images(home), len(CLASSES) * EACH
    splits = {}
    for place, split in enumerate(SPLITS):
        images = [read_rgb(path) for path in paths[place * each : (place + 1) * each]]
        if len({image.shape for image in images}) != 1:
            raise DataError("CINIC-10 holds images of several sizes. Unpack CINIC-10 again.")
        labels = np.arange(len(CLASSES)).repeat(EACH)
        splits[split] = Split(to_nchw(np.stack(images)), labels)
    return splits


def _cifar_halves(home: Path) -> dict[str, Split]:
    """CIFAR-10's training images as CINIC's train (even places) and valid (odd places) splits."""
    cifar10 = _TEN.load(home)
    places = np.arange(len(cifar10["train"]))
    return {
        "train": cifar10["train"].taken(places[::2]),
        "valid": cifar10["train"].taken(places[1::2]),
        "test": cifar10["test"],
    }


_caltech_files = one_file("caltech100_32.npz")
SOURCES = [
    _TEN,
    _HUNDRED,
    _REDUCED,
    replace(
        _REDUCED,
        **said("cifar100-grey"),
        shape=(1, SMALL, SMALL),
        mean=(0.4880,),
        std=(0.2428,),
        files=lambda home: _HUNDRED.files(home) or _REDUCED.files(home),
        load=_load_grey,
        stand_ins=("shapes-100-grey",),
        reduced_from="",
    ),
    replace(
        _HUNDRED,
        **said("caltech100"),
        sizes={"train": 5494, "test": 2748},
        mean=(0.5390, 0.5183, 0.4904),
        std=(0.2926, 0.2876, 0.3013),
        files=_caltech_files,
        load=lambda home: read_npz(_caltech_files(home)[0]),
        download=None,
        stand_ins=("shapes-100",),
    ),
    DataSource(
        **said("cinic10"),
        classes=10,
        shape=(3, 32, 32),
        sizes=dict.fromkeys(SPLITS, 90_000),
        mean=(0.4789, 0.4723, 0.4305),
        std=(0.2421, 0.2383, 0.2587),
        files=_images,
        load=_load_cinic,
        stand_ins=("cinic10-cifar", "shapes-shifted"),
    ),
    replace(
        _TEN,
        **said("cinic10-cifar"),
        sizes={"train": 25_000, "valid": 25_000, "test": 10_000},
        load=_cifar_halves,
        download=None,
        stand_ins=("shapes-shifted",),
    ),
]
