"""Digests of data by their content: two readers that decode the same samples give the same digest.

Decoding a large set takes long, so that its digest is kept in the cache, under a fingerprint of the
files, of the reader's source and of the libraries that it imports.
"""

import contextlib
import csv
import functools
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from fedtables.datasets.source import DataSource, Split
from fedtables.results.files import (
    ResultsError,
    cache_home,
    digest,
    read_sealed_json,
    write_sealed_json,
)
from fedtables.results.sourcecode import code_digest

VERIFIED = Path(__file__).with_name("verified.csv")
"""Data whose content is known, by `splits_digest`: the complete official sets, and parts and
reductions of them, each with what it is."""


def splits_digest(entry: DataSource, splits: Mapping[str, Split]) -> str:
    """SHA-256 of the samples, targets and groups of all splits, with dtypes and shapes, and of what
    the source says that annotations stand for (kind, size, names).
    """
    content = hashlib.sha256()
    for name, split in sorted(splits.items()):
        arrays = {"images": split.images, "labels": split.labels}
        arrays |= {f"annotation {key}": array for key, array in split.annotations.items()}
        arrays |= {} if split.groups is None else {"groups": split.groups}
        for what, array in sorted(arrays.items()):
            stored = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
            content.update(f"{name} {what} {stored.dtype.str} {stored.shape}\n".encode())
            content.update(stored.tobytes() if stored.ndim == 0 else stored.data)
    meanings = [[key, a.kind, a.size, a.names] for key, a in sorted(entry.annotations.items())]
    return digest([content.hexdigest(), meanings])


def fingerprint(entry: DataSource, reader: str, home: Path) -> str:
    """What the decoded content follows from: the files by path, size and times of change (of the
    content, which anybody may set, and of the file, which nobody may), and the code and libraries
    of the module `reader`.
    """
    stats = [(str(path), path.stat()) for path in entry.files(home)]
    listing = [[path, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns] for path, stat in stats]
    return digest([entry.name, listing, code_digest(reader)])


def data_digest(
    entry: DataSource,
    reader: str,
    home: Path,
    read: Callable[[], Mapping[str, Split]] | None = None,
) -> str:
    """`splits_digest` of what `read` returns, as the module `reader` decodes it from `home`; empty
    where it is not known and `read` is not given.

    Computed once for the same files and reader, then taken from the cache; a cache that cannot be
    written only costs time. Raises DataError if the data are damaged.
    """
    note = cache_home() / "data" / f"{fingerprint(entry, reader, home)}.json"
    known = None
    with contextlib.suppress(OSError):
        known = read_sealed_json(note)
    found = str((known or {}).get("digest", ""))
    if not found and read is not None:
        found = splits_digest(entry, read())
        with contextlib.suppress(ResultsError):
            write_sealed_json(note, {"set": entry.name, "digest": found})
    return found


@functools.cache
def verified(name: str) -> Mapping[str, str]:
    """The digests of a set that are known, each with what the samples are."""
    with VERIFIED.open(newline="") as stream:
        return {
            line["sha256"]: line["what"] for line in csv.DictReader(stream) if line["set"] == name
        }
