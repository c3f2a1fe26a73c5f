"""Decoded samples on disk, mapped into memory: a set of many files is decoded once, for all
commands and workers, and only what a run uses is read. So are values that are made of samples.
"""

import contextlib
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from filelock import FileLock

from fedtables.datasets.digests import fingerprint
from fedtables.datasets.source import DataSource, Split
from fedtables.results.files import (
    ResultsError,
    cache_home,
    read_sealed_json,
    write_sealed_json,
)

MANY = 1_000
"""Files of a set from which its samples are kept decoded."""
LARGE = 2**30
"""Bytes from which on values that are made of a set are kept."""
ANNOTATION = "annotation-"


def splits_of(entry: DataSource, reader: str, home: Path) -> Mapping[str, Split]:
    """The splits of a source, as the module `reader` decodes them from `home`. Those of many files
    are decoded once, and then mapped from the cache; a cache that cannot be written only costs
    time. Raises DataError if the data are damaged.
    """
    if len(entry.files(home)) < MANY:
        return entry.load(home)
    base = cache_home() / "decoded" / fingerprint(entry, reader, home)
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            base.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(FileLock(base.with_suffix(".lock")))  # others wait, then map it
        if (found := _mapped(base)) is not None:
            return found
        splits = entry.load(home)
        with contextlib.suppress(OSError, ResultsError):
            _write(base, splits)
            return _mapped(base) or splits
        return splits


def is_kept(shape: Sequence[int]) -> bool:
    """Whether float32 values of this shape are kept on disk."""
    return 4 * math.prod(shape) >= LARGE


def values_of(key: str, shape: Sequence[int], fill: Callable[[np.ndarray], None]) -> np.ndarray:
    """float32 values of `shape`, which `fill` writes. Large ones lie in the cache under `key`, and
    are mapped from there; where the cache cannot be written or has no room, they are in memory.
    """
    if is_kept(shape):
        header = cache_home() / "decoded" / f"{key}.json"
        file = header.with_name(f"{key}.values.npy")
        with contextlib.suppress(OSError, ValueError, ResultsError):
            file.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(header.with_suffix(".lock")):  # others wait, then map it
                if not (header.exists() and file.exists()):
                    _fill(file, shape, fill)
                    write_sealed_json(header, {"values": list(shape)})
                found: np.ndarray = np.load(file, mmap_mode="c")
                if found.shape == tuple(shape):
                    return found
    values = np.empty(shape, np.float32)
    fill(values)
    return values


def scratch(shape: Sequence[int]) -> np.ndarray:
    """Room for float32 values of `shape`. That for large ones is a file without a name, which is
    gone with them; where there is no room on the disk, it is memory.
    """
    if is_kept(shape):
        with contextlib.suppress(OSError, ResultsError):
            cache_home().mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=cache_home()) as file:
                _take(file, 4 * math.prod(shape))
                return np.memmap(file, np.float32, "r+", shape=tuple(shape))
    return np.empty(shape, np.float32)


def _take(file: IO[bytes], size: int) -> None:
    """Take `size` bytes of the disk for a file that is mapped: without a disk behind it, such
    memory would end the process. Raises OSError where there is no room.
    """
    if shutil.disk_usage(file.fileno()).free < 1.1 * size:
        raise OSError("no room on the disk")
    file.truncate(size)
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)


def _fill(file: Path, shape: Sequence[int], fill: Callable[[np.ndarray], None]) -> None:
    """Raises OSError where there is no room, and then nothing stays."""
    file.unlink(missing_ok=True)  # what a killed process left; who has mapped it keeps it
    try:
        values = np.lib.format.open_memmap(file, "w+", np.float32, tuple(shape))
        with file.open("r+b") as opened:
            _take(opened, file.stat().st_size)
        fill(values)
        values.flush()
    except BaseException:
        file.unlink(missing_ok=True)
        raise


def _arrays(split: Split) -> Iterator[tuple[str, np.ndarray]]:
    yield "images", split.images
    yield "labels", split.labels
    if split.groups is not None:
        yield "groups", split.groups
    for name, array in split.annotations.items():
        yield f"{ANNOTATION}{name}", array


def _file(base: Path, split: str, what: str) -> Path:
    return base.with_name(f"{base.name}.{split}.{what}.npy")


def _write(base: Path, splits: Mapping[str, Split]) -> None:
    """Every array in a file of its own, and what there is at last, which makes it whole. Where the
    disk is full, nothing stays.
    """
    index: dict[str, Any] = {}
    written = []
    try:
        for name, split in splits.items():
            for what, array in _arrays(split):
                written.append(_file(base, name, what))
                written[-1].unlink(missing_ok=True)  # who has mapped the old one keeps it
                np.save(written[-1], array)
            index[name] = {what: _facts(array) for what, array in _arrays(split)}
        write_sealed_json(base.with_suffix(".json"), index)
    except BaseException:
        for file in written:
            file.unlink(missing_ok=True)
        raise


def _facts(array: np.ndarray) -> list[Any]:
    return [str(array.dtype), list(array.shape)]


def _mapped(base: Path) -> dict[str, Split] | None:
    """What is on disk; None if it is not whole. What is written to the arrays is written to memory
    alone.
    """
    splits = {}
    try:
        index = read_sealed_json(base.with_suffix(".json"))
        for name, arrays in (index or {}).items():
            found = {what: np.load(_file(base, name, what), mmap_mode="c") for what in arrays}
            if {what: _facts(array) for what, array in found.items()} != arrays:
                return None
            annotations = {
                what.removeprefix(ANNOTATION): array
                for what, array in found.items()
                if what.startswith(ANNOTATION)
            }
            splits[name] = Split(
                found["images"], found["labels"], annotations, groups=found.get("groups")
            )
    except (OSError, ValueError):
        return None
    return splits or None
