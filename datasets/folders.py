"""Sets that are folders of many files: the tables that name them, whether all of them are there,
and which names a test split takes where nobody has published one.
"""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from datasets.source import DataError


def read_table(path: Path, columns: Sequence[str], how_to_get: str) -> list[dict[str, str]]:
    """The rows of a CSV file as text by column. Raises DataError if it has no rows, lacks one of
    the columns or has it twice, or if a row has fewer or more fields than the header.

    A field is not counted where the header has no name for it: some tables end their rows, or their
    header alone, with a comma.
    """
    rows = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            reader = csv.DictReader(lines, strict=True)
            header = reader.fieldnames or []
            for row in reader:
                beyond = any(row.pop(None, ()))
                if beyond or any(row[column] is None for column in header if column):
                    raise DataError(
                        f"{path}: line {reader.line_num} has {'more' if beyond else 'fewer'} fields"
                        f" than the header; the table is damaged or cut off. {how_to_get}"
                    )
                rows.append(row)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} is not a readable table ({error}). {how_to_get}") from error
    if not rows or any(header.count(column) != 1 for column in columns):
        raise DataError(
            f"{path} is not a table with the columns {', '.join(columns)}, each once. {how_to_get}"
        )
    return rows


def unrepeated(table: Path, names: Sequence[str], how_to_get: str) -> None:
    """Raise DataError if a table names a sample twice: it would count twice, and might be in two
    splits.
    """
    for name, times in Counter(names).items():
        if times > 1:
            raise DataError(f"{table} names {name} {times} times. {how_to_get}")


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
