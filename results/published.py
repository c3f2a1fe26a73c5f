"""The numbers the papers print. They live in `results/published/` as data and nowhere else."""

from __future__ import annotations

import csv
import functools
from dataclasses import dataclass
from pathlib import Path

PUBLISHED = Path(__file__).parent / "published"


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


def format_column(keys: dict[str, object]) -> str:
    """The inverse of `parse_column`."""
    return " ".join(f"{key}={value}" for key, value in keys.items())


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


@functools.cache
def published_table(table: str) -> tuple[PublishedCell, ...]:
    """The printed cells of `paper/table`, in print order; empty for a figure without printed
    numbers.
    """
    path = PUBLISHED / f"{table}.csv"
    if not path.exists():
        return ()
    with path.open(newline="", encoding="utf-8") as stream:
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
            for line in csv.DictReader(stream)
        )


@functools.cache
def claims(paper: str) -> tuple[Claim, ...]:
    """What the paper's text claims about its tables; nothing where nobody has noted any."""
    path = PUBLISHED / paper / "claims.csv"
    if not path.exists():
        return ()
    with path.open(newline="", encoding="utf-8") as stream:
        names = Claim.__dataclass_fields__
        return tuple(
            Claim(**{name: line[name] for name in names}) for line in csv.DictReader(stream)
        )
