"""Sets that are folders of many files: whether all of them are there, and which names a test split
takes where nobody has published one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from datasets.source import DataError


def all_there(title: str, paths: Sequence[Path], how_to_get: str) -> bool:
    """Whether the files of a set are there: all, or none. Raises DataError for some, rather than
    let another set stand in.
    """
    missing = [path for path in paths if not path.is_file()]
    if missing and len(missing) < len(paths):
        raise DataError(
            f"{title}: {len(missing):,} of {len(paths):,} files are missing, the first is"
            f" {missing[0]}. Complete it, or take its folder away for another set to stand in."
            f" {how_to_get}"
        )
    return bool(paths) and not missing


def hashed(names: Iterable[str]) -> list[str]:
    """The names, each once, in the order of their SHA-256: the same on every machine, and of no
    meaning.
    """
    return sorted(set(names), key=lambda name: hashlib.sha256(name.encode()).hexdigest())


def held_out(names: Iterable[str], share: float) -> set[str]:
    """round(share x n) of the n names for a test split: the first of `hashed`."""
    order = hashed(names)
    return set(order[: round(share * len(order))])
