"""The numbers the papers print. They live in `results/published/` as data and nowhere else, and are
read only as they were checked against print: as the paper's `SHA256SUMS` says.
"""

import csv
import functools
import hashlib
import io
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from fedtables.results.files import ResultsError

PUBLISHED = Path(__file__).parent / "published"
SUMS = "SHA256SUMS"
"""As `sha256sum` writes them: a digest, two characters, a name."""
COLUMNS = frozenset({"row", "column", "metric", "value", "std", "n", "note"})


@dataclass(frozen=True)
class PublishedCell:
    """One printed number; `value` is None for a printed dash and text for a class list."""

    row: str
    column: str
    metric: str
    value: float | str | None
    std: float | None
    n: int | None
    note: str

    @property
    def unit(self) -> str:
        """`percent`, `fraction`, `pixel`, ...: how it is printed; empty if unknown."""
        first = self.note.split(";")[0].split()
        return first[0].removeprefix("unit=") if first and first[0].startswith("unit=") else ""


@dataclass(frozen=True)
class Claim:
    """A statement of the paper about a table, as a predicate over its cells (see
    results/published/README.md).
    """

    id: str
    table: str
    claim: str
    predicate: str
    holds_in_print: str
    cells: str


def parse_column(column: str) -> dict[str, str]:
    """`"dataset=mnist distribution=iid"` -> `{"dataset": "mnist", "distribution": "iid"}`; a bare
    word maps to itself.
    """
    return {key: value or key for key, _, value in (part.partition("=") for part in column.split())}


def format_column(keys: Mapping[str, object]) -> str:
    """The inverse of `parse_column`."""
    return " ".join(f"{key}={value}" for key, value in keys.items())


def without(column: str, *keys: str) -> tuple[str, dict[str, str]]:
    """A column without some keys, and these keys with their values, where it has them."""
    pairs = parse_column(column)
    taken = {key: pairs.pop(key) for key in keys if key in pairs}
    return format_column(pairs), taken


def papers() -> list[str]:
    """Keys of the papers with published numbers, for example `dlad`."""
    return sorted(folder.name for folder in PUBLISHED.iterdir() if folder.is_dir())


def tables(paper: str) -> list[str]:
    """Keys of a paper's published tables, for example `table2`."""
    return sorted(path.stem for path in (PUBLISHED / paper).glob("table*.csv"))


def _number(text: str) -> float | str | None:
    if text == "":
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _lines(path: Path, columns: Set[str]) -> list[dict[str, str]]:
    """The lines of a CSV, by column; none where there is no file.

    Raises ResultsError for a file that is not the one that was checked, or lacks one of `columns`.
    """
    lines: list[dict[str, str]] = []
    try:
        sums = path.parent / SUMS
        checked = sums.read_text(encoding="utf-8").splitlines() if sums.exists() else []
        digests = {line[66:]: line[:64] for line in checked}
        if path.name not in digests and not path.exists():
            return []
        raw = path.read_bytes()
        whole = hashlib.sha256(raw).hexdigest() == digests.get(path.name)
        lines = list(csv.DictReader(io.StringIO(raw.decode(), newline="")))
    except (OSError, ValueError):
        whole = False
    if not whole:
        raise ResultsError(
            f"{path} is not as it was checked against print, by {SUMS} beside it. Restore both from"
            f" version control, or, where its numbers are checked, run `sha256sum *.csv > {SUMS}`."
        )
    if lines and not columns <= lines[0].keys():
        raise ResultsError(
            f"{path} lacks the columns {', '.join(sorted(columns - lines[0].keys()))}"
        )
    return lines


@functools.cache
def published_table(table: str) -> tuple[PublishedCell, ...]:
    """The printed cells of `paper/table`, in print order; empty for a figure without printed
    numbers. Raises ResultsError for a file that was changed.
    """
    return tuple(
        PublishedCell(
            row=line["row"],
            column=line["column"],
            metric=line["metric"],
            value=_number(line["value"]),
            std=float(line["std"]) if line["std"] else None,
            n=int(line["n"]) if line["n"] else None,
            note=line["note"],
        )
        for line in _lines(PUBLISHED / f"{table}.csv", COLUMNS)
    )


@functools.cache
def claims(paper: str) -> tuple[Claim, ...]:
    """What the paper's text claims about its tables; nothing where nobody has noted any. Raises
    ResultsError for a file that was changed.
    """
    names = Claim.__dataclass_fields__
    return tuple(
        Claim(**{name: line[name] for name in names})
        for line in _lines(PUBLISHED / paper / "claims.csv", names.keys())
    )
