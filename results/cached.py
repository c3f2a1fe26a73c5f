"""What the cache holds: each thing with its files, its size and its age; how a thing is removed;
and how a command that relies on the cache keeps others from removing anything.
"""

import contextlib
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import ReadWriteLock, Timeout

from fedtables.results.files import (
    ResultsError,
    cache_home,
    check_writable,
    not_written,
    read_sealed_json,
)

HEADER, BODY, ARRAY = ".json", ".safetensors", ".npy"
"""How the names of a stage's two files end, and of decoded arrays beside their header. A thing is
whole when its header is there."""
LOCK = "in-use.lock"
HEX = "[0-9a-f]"
KEY, PART = f"{HEX}{{64}}", f"{HEX}{{2}}"
CELL, STAGE = f"cells/{PART}/{KEY}", f"stages/[a-z0-9-]+/{PART}/{KEY}"
LEFTOVERS = "leftovers"
DAY = 86_400.0
"""Seconds. What is younger, and looks like a leftover, may be in the middle of being written."""
KINDS = {
    "cells": rf"{CELL}\.json",
    "stages": rf"{STAGE}\.json",
    "snapshots": rf"{STAGE}-running\.pt",
    "plans": rf"plans/{PART}/{KEY}\.json",
    "contracts": rf"contracts/{KEY}\.json",
    "pictures": rf"pictures/{KEY}\.json",
    "digests": rf"data/{KEY}\.json",
    "decoded": rf"decoded/{KEY}\.json",
    LEFTOVERS: rf"{STAGE}\.(lock|safetensors)|decoded/{KEY}\.(lock|.+\.npy)"
    rf"|[a-z]+/(.+/)?\.{HEX}{{40}}\.\w+",
}
"""What there is, each with what it is called below the cache's folder: finished cells; shared parts
of cells; fits between two rounds; what cells take; what methods promise; what pictures show; what
data contain; decoded samples; and what killed processes have left behind."""
USED, STALE, UNTOLD = "used", "stale", "untold"
"""What the present code makes of a thing: a run may take it, none does, or nobody can tell."""
PLACES = (
    *("cells/*/*", "stages/*/*/*", "plans/*/*"),
    *("contracts/*", "pictures/*", "data/*", "decoded/*"),
)
"""Where these lie. Data sets may lie in folders below `data`, and are not looked at."""


@dataclass(frozen=True)
class Entry:
    """One thing that the cache holds."""

    kind: str
    """A key of `KINDS`."""
    files: tuple[Path, ...]
    """The first makes it whole."""
    size: int
    """Bytes of all its files."""
    written: float
    """Seconds since the epoch."""

    @property
    def shown_as(self) -> str:
        """Its kind; of a stage with its own, as in `stages/fit`."""
        return "/".join(self.files[0].parts[-4:-2]) if self.kind == "stages" else self.kind


def entries(home: Path, *kinds: str) -> list[Entry]:
    """What the cache in the folder `home` holds of these kinds, or of all; the newest first."""
    found = [
        entry
        for place in PLACES
        for path in home.glob(place)
        if (entry := _entry(home, path)) is not None and (not kinds or entry.kind in kinds)
    ]
    return sorted(found, key=lambda entry: (-entry.written, entry.files[0].name))


def _entry(home: Path, path: Path) -> Entry | None:
    """The thing that a file makes whole; None for another file, and for one that is gone."""
    name = path.relative_to(home).as_posix()
    kind = next((kind for kind, known in KINDS.items() if re.fullmatch(known, name)), None)
    with_header = path.suffix in (BODY, ARRAY) and _header(path).exists()
    if kind is None or with_header:
        return None
    files = (path, *_bodies(kind, path))
    try:
        stats = [file.stat() for file in files if file.is_file()]
        written = stats[0].st_mtime
    except (OSError, IndexError):
        return None
    young = kind == LEFTOVERS and time.time() - written < DAY
    return None if young else Entry(kind, files, sum(s.st_size for s in stats), written)


def _header(body: Path) -> Path:
    """What makes it whole."""
    return body.with_name(body.name.partition(".")[0] + HEADER)


def _bodies(kind: str, header: Path) -> list[Path]:
    if kind == "decoded":
        return sorted(header.parent.glob(f"{header.stem}.*{ARRAY}"))
    return [header.with_suffix(BODY)] if kind == "stages" else []


def unreferenced(home: Path, leaving: Iterable[Entry]) -> list[Entry]:
    """Of the entries that are to leave the cache, those that no stage which stays refers to, at any
    depth.
    """
    left = {entry.files[-1]: entry for entry in leaving}
    waiting = [entry for entry in entries(home, "stages") if entry.files[-1] not in left]
    while waiting:
        for body in _references(home, waiting.pop()):
            if body in left:
                waiting.append(left.pop(body))
    return [*left.values()]


def _references(home: Path, stage: Entry) -> list[Path]:
    """The bodies that a stage relies on beside its own; none of one that is damaged or gone."""
    header: dict[str, Any] = {}
    with contextlib.suppress(FileNotFoundError):
        header = read_sealed_json(stage.files[0]) or {}
    return [home / "stages" / name for name, _ in header.get("info", {}).get("references", ())]


def remove(entry: Entry) -> None:
    """Remove what makes it whole first: after a kill in the middle the rest is a leftover. Raises
    ResultsError for a file that cannot be removed.
    """
    for path in entry.files:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise ResultsError(f"cannot remove {path}: {error.strerror or error}") from error


@contextlib.contextmanager
def in_use() -> Iterator[None]:
    """Nothing is removed from the cache inside; while something is being removed, wait. Raises
    ResultsError for a cache that cannot be written.
    """
    with _held(cache_home(), ReadWriteLock.read_lock, timeout=-1):
        yield


@contextlib.contextmanager
def unused() -> Iterator[None]:
    """No command relies on the cache inside. Raises ResultsError if one does already, or for a
    cache that cannot be written.
    """
    with _held(cache_home(), ReadWriteLock.write_lock, timeout=0):
        yield


@contextlib.contextmanager
def _held(home: Path, hold: Callable[..., Any], timeout: float) -> Iterator[None]:
    """The cache's lock is held inside, as the method `hold` of it does."""
    check_writable(home)
    with contextlib.ExitStack() as stack:
        try:
            home.mkdir(parents=True, exist_ok=True)
            stack.enter_context(hold(ReadWriteLock(home / LOCK), timeout=timeout))
        except Timeout as error:
            raise ResultsError(
                f"another command is running with the cache {home}. Wait for its end"
            ) from error
        except OSError as error:
            raise not_written(home / LOCK, error) from error
        except (sqlite3.Error, ValueError) as error:
            raise ResultsError(f"{home / LOCK} cannot be used: {error}. Remove it") from error
        yield
