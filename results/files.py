"""Writing files so that an interrupted run never leaves half of one behind."""

import errno
import hashlib
import itertools
import json
import os
import tempfile
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any

SEAL = "sha256"
"""The entry with the digest of all others."""
RECORDS = ".records.jsonl"
"""How the names of files end that hold the records of a table, beside its other files."""
TABLES = (".csv", ".jsonl")
"""How names end of what commands read in folders of results."""
EMBEDDED = Path(__file__).parent / "embedded"
"""Recorded cells that come with the package, for `verify`."""
RUNS, COMMITTED = Path("runs"), Path("results")
"""Folders of the current one: where a run writes unless it is told otherwise, and the results that
come with the suite, for reading."""


class RefusedError(Exception):
    """What was asked for cannot be done; the message says what to do."""


class ResultsError(RefusedError):
    """Results cannot be written or read; the message says what to do."""


class DataError(RefusedError):
    """Data or weights are missing, damaged or unusable; the message says what to do."""


def cache_home() -> Path:
    """Where finished cells and stages are kept: `$FEDTABLES_CACHE`, else `~/.cache/fedtables`.
    Raises ResultsError for the home of a user that there is none of.
    """
    return _home("FEDTABLES_CACHE", "~/.cache/fedtables")


def data_home() -> Path:
    """Where data sets and weights are looked for: `$FEDTABLES_DATA`, else
    `~/.cache/fedtables/data`. Raises ResultsError for the home of a user that there is none of.
    """
    return _home("FEDTABLES_DATA", "~/.cache/fedtables/data")


def _home(variable: str, usual: str) -> Path:
    """The folder that an environment variable names; the usual one if it is empty or not set."""
    named = os.environ.get(variable) or usual
    try:
        check_name(Path(named))
        return Path(named).expanduser()
    except (RuntimeError, ValueError) as error:
        raise ResultsError(f"{variable}={named}: {error}; name a folder") from error


def check_name(path: Path) -> None:
    """Raise ValueError for a path that no text can hold: one of bytes that are no UTF-8; or no file
    system: one with a NUL.
    """
    if "\0" in str(path):
        raise ValueError("its name has a NUL, which no file's has")
    try:
        str(path.absolute()).encode()
    except UnicodeEncodeError:
        raise ValueError("its full name is no UTF-8; rename it") from None


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

    Raises ResultsError when the folder is read-only or the disk is full, and if there is something
    else than a file at `path`: a folder or a device is never replaced.
    """
    check_replaceable(path)
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
        raise not_written(path, error) from error


def not_written(path: Path, error: OSError) -> ResultsError:
    """What to say of a file or folder that cannot be written."""
    advice = "Free some space, or choose" if error.errno == errno.ENOSPC else "Choose"
    return ResultsError(
        f"cannot write {path}: {error.strerror or error}. {advice} another folder (--results"
        " FOLDER for tables, FEDTABLES_CACHE for the cache). Finished cells are kept; the same"
        " command goes on from there."
    )


def check_replaceable(path: Path) -> None:
    """Raise ResultsError if there is something else than a file at `path`."""
    try:
        if path.is_file() or not path.exists():
            return
        kind = "a folder" if path.is_dir() else "no ordinary file"
    except OSError as error:
        kind = error.strerror or str(error)
    raise ResultsError(f"cannot write {path}: it is {kind}. Move it away, or choose another folder")


def check_writable(folder: Path) -> None:
    """Raise ResultsError if a folder cannot be written, now rather than after an hour; one that is
    not there yet, if the nearest above it cannot.
    """
    try:
        nearest = next(there for there in (folder, *folder.parents) if there.exists())
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise not_written(folder, error) from error


def check_output(path: Path, inputs: Iterable[Path] = ()) -> None:
    """Raise ResultsError if `path` cannot be written, or if that would replace what must stay: a
    folder, a device, one of the `inputs`, a table in a folder that is one, or a file of any table.
    """
    check_replaceable(path)
    check_writable(path.parent)
    real, there = path.resolve(), path.exists()
    for read in inputs if there else ():
        inside = real.suffix in TABLES and real.is_relative_to(read.resolve())
        if inside or (read.exists() and path.samefile(read)):
            raise ResultsError(f"cannot write {path}: the command reads it; name another file")
    for named in (real, *real.parents):
        tables = (p.name.removesuffix(RECORDS) for p in named.parent.glob(f"*{RECORDS}"))
        if any(named.name.startswith(f"{table}.") for table in tables):
            raise ResultsError(
                f"cannot write {path}: {named.name} is a file of a table; name another"
            )


def check_apart(outputs: Iterable[Path]) -> None:
    """Raise ResultsError if two of a command's outputs are one file: the second would replace the
    first.
    """
    seen: set[Path] = set()
    for path in outputs:
        if path.resolve() in seen:
            raise ResultsError(f"two outputs go to {path}; name a file for each")
        seen.add(path.resolve())


def displace(path: Path) -> None:
    """Move a directory aside that is where a cache keeps a file: nothing of this suite made it.

    Raises ResultsError if it cannot be moved.
    """
    if not path.is_dir():
        return
    free = (path.with_name(f"{path.name}.displaced-{n}") for n in itertools.count())
    try:
        path.rename(next(name for name in free if not name.exists()))
    except OSError as error:
        raise ResultsError(
            f"{path} is a directory where the cache keeps a file: {error}. Remove it."
        ) from error


def write_sealed_json(path: Path, value: dict[str, Any]) -> None:
    """Write a cache's JSON together with the digest of itself and its name, so that
    `read_sealed_json` can tell damage, and an entry that belongs elsewhere.
    """
    displace(path)
    seal = digest([path.name, value])
    write_atomic(path, canonical_json({"value": value, SEAL: seal}) + "\n")


def read_sealed_json(path: Path) -> dict[str, Any] | None:
    """The value written by `write_sealed_json`, or None if the file is damaged or no file.

    Raises FileNotFoundError if there is nothing.
    """
    try:
        sealed = json.loads(path.read_text(encoding="utf-8"))
        value = sealed["value"]
        whole = sealed[SEAL] == digest([path.name, value]) and isinstance(value, dict)
        return value if whole else None
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def with_seal(value: dict[str, Any], *place: int) -> dict[str, Any]:
    """The value with its own digest, for a file that people read; `place` is sealed too.

    The digest comes first: what is cut out of the file hardly leaves a whole value without it.
    """
    return {SEAL: [*place, digest([*place, value])], **value}


def without_seal(value: Any, known: Container[str]) -> tuple[dict[str, Any], list[Any]]:
    """The value that was given to `with_seal` and its place. An older version sealed nothing: then
    the place is empty, and there must be no entries but those that are `known`.

    Raises ValueError, TypeError or AttributeError for another value.
    """
    rest = {name: entry for name, entry in value.items() if name != SEAL}
    if SEAL in value:
        *place, found = value[SEAL]
        if found != digest([*place, rest]):
            raise ValueError("it is not as it was written")
        return rest, place
    if unknown := [name for name in rest if name not in known]:
        raise ValueError(f"it has {unknown[0]!r}, which nothing of this suite writes")
    return rest, []
