"""Writing files so that an interrupted run never leaves half of one behind."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any


class ResultsError(Exception):
    """Results cannot be written or read; the message says what to do."""


class DataError(Exception):
    """Data or weights are missing, damaged or unusable; the message says what to do."""


def cache_home() -> Path:
    """Where finished cells and stages are kept: `$FEDTABLES_CACHE`, else `~/.cache/fedtables`."""
    return Path(os.environ.get("FEDTABLES_CACHE", "~/.cache/fedtables")).expanduser()


def data_home() -> Path:
    """Where data sets and weights are looked for: `$FEDTABLES_DATA`, else
    `~/.cache/fedtables/data`.
    """
    return Path(os.environ.get("FEDTABLES_DATA", "~/.cache/fedtables/data")).expanduser()


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spare spaces, so that equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=True)


def digest(value: Any) -> str:
    """SHA-256 (hex) of a JSON-like value, of bytes, or of text."""
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    text = value if isinstance(value, str) else canonical_json(value)
    return hashlib.sha256(text.encode()).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 (hex) of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_atomic(path: Path, content: str | bytes) -> None:
    """Write `content` to `path` in one step: readers see the old file or the new one, never a part.

    Raises ResultsError when the folder is read-only or the disk is full.
    """
    data = content.encode() if isinstance(content, str) else content
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        advice = "Free some space, or choose" if error.errno == errno.ENOSPC else "Choose"
        raise ResultsError(
            f"cannot write {path}: {error.strerror or error}. {advice} another folder (--results"
            " FOLDER for tables, FEDTABLES_CACHE for the cache). Finished cells are kept; the same"
            " command goes on from there."
        ) from error


def write_sealed_json(path: Path, value: dict[str, Any]) -> None:
    """Write JSON together with its own digest, so that `read_sealed_json` can tell damage."""
    write_atomic(path, canonical_json({"value": value, "sha256": digest(value)}) + "\n")


def read_sealed_json(path: Path) -> dict[str, Any] | None:
    """The value written by `write_sealed_json`, or None if the file is damaged.

    Raises FileNotFoundError if there is no such file.
    """
    try:
        sealed = json.loads(path.read_text())
        value = sealed["value"]
        return value if sealed["sha256"] == digest(value) else None
    except (ValueError, KeyError, TypeError):
        return None
