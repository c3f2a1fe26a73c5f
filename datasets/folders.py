"""Sets that are folders of many files: where they lie, whether all files are there, the tables that
name them, and which names a test split takes where nobody has published one.

Names count in upper and lower case alike, a folder may lie one folder deeper than it should, and
what systems leave in folders is passed over. A set that is there in part is refused: nothing stands
in for it.
"""

import csv
import functools
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from fedtables.datasets.source import DataError

CLUTTER = ("thumbs.db", "desktop.ini", "__macosx")
"""What systems leave in folders, in lower case, beside hidden files."""
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")

Found = TypeVar("Found")


# -- where files lie --


def _counts(name: str) -> bool:
    return not name.startswith(".") and name.lower() not in CLUTTER


def listed(folder: Path, *endings: str) -> list[Path]:
    """What lies in a folder and ends with one of `endings`, by name; empty if there is no folder.

    Hidden files, such as the `._NAME` of macOS, are passed over, and so is other `CLUTTER`. Raises
    OSError for a folder that cannot be listed.
    """
    folder = Spelling().find(folder) or folder
    if not folder.is_dir():
        return []
    return sorted(
        path
        for path in folder.iterdir()
        if _counts(path.name) and path.name.lower().endswith(endings or ("",))
    )


class Spelling:
    """Finds paths whose names are spelled in upper or lower case. It lists each folder once."""

    def __init__(self) -> None:
        self._listings: dict[Path, dict[str, Path]] = {}

    def find(self, path: Path) -> Path | None:
        """The path as the disk spells it, or None. A link to nothing is found too."""
        if os.path.lexists(path):
            return path
        folder = self.find(path.parent)
        if folder is None:
            return None
        if folder not in self._listings:
            self._listings[folder] = {entry.name.lower(): entry for entry in listed(folder)}
        return self._listings[folder].get(path.name.lower())


def places(home: Path, *names: str) -> list[Path]:
    """Where files or folders of these names are, best first: in `home`, then one folder deeper."""
    if not home.is_dir():
        return []
    spelling = Spelling()
    folders = [home, *(path for path in listed(home) if path.is_dir())]
    return [
        found
        for folder in folders
        for name in names
        if (found := spelling.find(folder / name)) is not None
    ]


def one_file(name: str) -> Callable[[Path], list[Path]]:
    """The `files` of a set that is one file."""
    return lambda home: places(home, name)[:1]


def beside(home: Path, folder: Path, name: str) -> Path:
    """The folder `name` of a set that has several, of which `folder` is one: itself, one beside it,
    or else one that `places` finds.
    """
    if folder.name.lower() == name.lower():
        return folder
    own = folder.with_name(name)
    return Spelling().find(own) or next(iter(places(home, name)), own)


def below(folder: Path, *endings: str) -> Iterator[Path]:
    """What `listed` finds in a folder and in those inside of it, but for folders."""
    for path in listed(folder):
        if path.is_dir() and not path.is_symlink():
            yield from below(path, *endings)
        elif path.name.lower().endswith(endings or ("",)):
            yield path


def in_part(lack: str) -> DataError:
    """The error of a set that is there in part: where, what it lacks, and what to do."""
    return DataError(f"{lack}. Complete it, or take it away for another set to stand in.")


def whole(home: Path, names: Sequence[str], read: Callable[[Path], Found]) -> Found | None:
    """What `read` finds in the first folder, of those with one of the names, that has all of a set.

    `read` returns nothing, such as an empty list, for a folder without the set, and raises
    DataError for a part of it. None if no folder has anything. Raises DataError if one has
    something, and none has all, and for an archive that is not unpacked.
    """
    refused: DataError | None = None
    for folder in places(home, *names):
        if folder.exists() and not any(below(folder)):
            continue
        try:
            if not folder.exists():
                raise in_part(f"{folder} is a link to nothing")
            if found := read(folder):
                return found
            raise in_part(f"{folder} has none of the files of the set where they should be")
        except DataError as error:
            refused = refused or error
    if refused:
        raise refused
    if packed := places(home, *(name + ending for name in names for ending in ARCHIVES)):
        raise DataError(
            f"{packed[0]} is not unpacked. Unpack it, or take it away for another set to stand in."
        )
    return None


Reader = Callable[[Path], list[Found]]
"""Takes a folder."""


def inside(*names: str) -> Callable[[Reader[Found]], Reader[Found]]:
    """Makes of what reads a set's folder, one with one of the names, what reads the data home:
    `whole`, or else nothing.
    """

    def of_home(read: Reader[Found]) -> Reader[Found]:
        return functools.wraps(read)(lambda home: whole(home, names, read) or [])

    return of_home


def all_of(wanted: Iterable[Sequence[Path]]) -> list[Path]:
    """The files of a set as the disk spells them: all, or none. Each of `wanted` is one file under
    all of its usual names, the best first. Raises DataError for some of them.
    """
    spelling = Spelling()
    paths = []
    for names in wanted:
        found = [*filter(None, map(spelling.find, names)), names[0]]
        paths.append(next(filter(Path.is_file, found), found[0]))
    missing = [path for path in paths if not path.is_file()]
    if missing and (len(missing) < len(paths) or any(map(os.path.lexists, missing))):
        why = " (a link to nothing)" if missing[0].is_symlink() else ""
        raise in_part(
            f"{len(missing):,} of {len(paths):,} files are missing, the first is {missing[0]}{why}"
        )
    return [] if missing else paths


# -- what files hold --


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Inside, every error is a DataError that says in a line that the file is not `what`, and why.
    Decoders have many kinds of errors for damage, and some that no library names.
    """
    try:
        yield
    except DataError:
        raise
    except Exception as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"{path} is not {what} ({why}). Get it again.") from error


def read_table(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """The rows of a CSV file as text by column. Raises DataError if it has no rows, lacks one of
    the columns or has it twice, or if a row has fewer or more fields than the header.

    A field is not counted where the header has no name for it: some tables end their rows, or their
    header alone, with a comma.
    """
    path = Spelling().find(path) or path
    rows = []
    with reading(path, "a readable table"), path.open(newline="", encoding="utf-8-sig") as lines:
        reader = csv.DictReader(lines, strict=True)
        header = reader.fieldnames or []
        for row in reader:
            beyond = any(row.pop(None, ()))
            if beyond or any(row[column] is None for column in header if column):
                raise DataError(
                    f"{path}: line {reader.line_num} has {'more' if beyond else 'fewer'} fields"
                    " than the header; the table is damaged or cut off."
                )
            rows.append(row)
    if not rows or any(header.count(column) != 1 for column in columns):
        raise DataError(f"{path} is not a table with the columns {', '.join(columns)}, each once.")
    return rows


def unrepeated(table: Path, names: Sequence[str]) -> None:
    """Raise DataError if a table names a sample twice: it would count twice, and might be in two
    splits.
    """
    for name, times in Counter(names).items():
        if times > 1:
            raise DataError(f"{table} names {name} {times} times.")


# -- splits --


def hashed(names: Iterable[str]) -> list[str]:
    """The names, each once, in the order of their SHA-256: the same on every machine, and of no
    meaning.
    """
    return sorted(set(names), key=lambda name: hashlib.sha256(name.encode()).hexdigest())


def held_out(names: Iterable[str], share: float) -> set[str]:
    """round(share x n) of the n names for a test split: the first of `hashed`."""
    order = hashed(names)
    return set(order[: round(share * len(order))])
