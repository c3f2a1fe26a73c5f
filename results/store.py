"""Records on disk: the cell cache that makes a run resumable, and the files a table leaves behind.

A finished cell is written twice. Its record goes to the cell cache under `$FEDTABLES_CACHE` as soon
as it ends; that copy is what a later run trusts, after checking its digest and the code it came
from. When the command ends, the table's CSV and the records beside it are written to the results
folder; they are output, for people and for git. No run reads a number back from there, unless
somebody has put these records into the cache (`fedtables.results.pack.take_records`), or another
command has written them meanwhile: they only tell which other cells belong into the table.
"""

import contextlib
import csv
import io
import json
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pandas as pd
from filelock import FileLock

from fedtables.results.files import (
    ResultsError,
    cache_home,
    check_replaceable,
    check_writable,
    digest,
    not_written,
    read_sealed_json,
    write_atomic,
    write_sealed_json,
)
from fedtables.results.frame import over_seeds, read_records, records_text, tidy
from fedtables.results.record import OK, TEXTS, Record

CSV_COLUMNS = (
    *("row", "column", "metric", "value", "std", "n"),
    *("published", "difference", "status", "bytes_up", "bytes_down", "epsilon", "delta"),
    *("data", "origin", "profile", "protocol", "seeds", "public", "public_origin", "statistic"),
    *("private", "private_origin", "settled", "contract", "defined", "of"),
)
"""The first six are those of `results/published/`, so that the two files join."""
CHECK = "check"
PLACE = ["row", "column", "metric"]
"""What tells the lines of a table apart; a cell that failed has no metric."""
SUFFIXES = (
    *("csv", "md", "png", "svg", "pdf", "claims.csv", "layout.json", "records.jsonl"),
    *("run.toml", "log"),
)
"""Of the files of a table."""
OF_TEXTS = ("value", "published", "difference")
COUNTS = ("n", "bytes_up", "bytes_down", "defined", "of")
NUMBERS = (*OF_TEXTS, "std", "epsilon", "delta", *COUNTS)
Line = Mapping[str, Any]
"""One line of a table's CSV: `NUMBERS` are numbers, whole ones of `COUNTS`, or None; of a metric of
`TEXTS` those of `OF_TEXTS` are texts, as all else is."""


RUN = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes a cell for a formula by, or leaves out to find one."""
QUOTE = "'"
QUOTED = tuple(QUOTE + start for start in (*RUN, QUOTE))
"""How cells begin that have been quoted."""

OTHER_CODE = "computed by other code or packages"


class CellCache:
    """Finished cells by digest, one sealed JSON file each."""

    def __init__(self, home: Path | None = None):
        self.folder = (home or cache_home()) / "cells"

    def _path(self, cell: str) -> Path:
        return self.folder / cell[:2] / f"{cell}.json"

    def get(self, cell: str, code: str) -> tuple[Record | None, str]:
        """The finished record of a cell and ``""``, or None and the reason why it has to be
        computed.
        """
        try:
            value = read_sealed_json(self._path(cell))
        except FileNotFoundError:
            return None, ""
        damaged = f"damaged cache entry {self._path(cell)}"
        if value is None:
            return None, damaged
        if value.get("code") != code:
            return None, OTHER_CODE
        record = _finished(value, cell)
        return (None, damaged) if record is None else (record, "")

    def stored(self, cell: str) -> Record | None:
        """The finished record of a cell, by whatever code; None where there is no whole one."""
        try:
            return _finished(read_sealed_json(self._path(cell)) or {}, cell)
        except FileNotFoundError:
            return None

    def put(self, record: Record) -> None:
        write_sealed_json(self._path(record.cell), record.to_json())


def _finished(value: dict[str, Any], cell: str) -> Record | None:
    """The record in a cell's entry, if it is whole and of this cell."""
    try:
        record = Record.from_json(value)
    except (ValueError, KeyError, TypeError):
        return None
    return record if record.cell == cell and record.status == OK else None


class TableFiles:
    """The files of one table in the results folder: `<table>.csv`, `.md`, `.png`, `.svg`,
    `.records.jsonl` and more.
    """

    def __init__(self, folder: Path, profile: str, table: str, variant: str = ""):
        paper, name = table.split("/")
        stem = f"{name}.{variant}" if variant else name
        self.base = folder / profile / paper / stem

    def path(self, suffix: str) -> Path:
        """`suffix` is one of `SUFFIXES`."""
        return self.base.parent / f"{self.base.name}.{suffix}"

    def check_writable(self) -> None:
        """Raise ResultsError now rather than after an hour of training."""
        for suffix in SUFFIXES:
            check_replaceable(self.path(suffix))
        check_writable(self.base.parent)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """No other process writes the files inside, whatever cache it has. Raises ResultsError if
        the folder cannot be written.
        """
        lock = FileLock(self.base.with_name(f".{self.base.name}.lock"))
        try:
            self.base.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except OSError as error:
            raise not_written(Path(lock.lock_file), error) from error
        try:
            yield
        finally:
            lock.release()

    def listed_cells(self) -> dict[str, Record]:
        """Records beside the table by cell. They tell which cells it has and which failed; numbers
        come from the cache. Raises ResultsError if they are damaged: cells would go missing.
        """
        return {record.cell: record for record in read_records(self.path("records.jsonl"))}

    def listed_rows(self) -> list[str]:
        """The rows of the table's CSV, each once; none if there is no CSV that can be read."""
        try:
            return list(read_csv(self.path("csv"), CSV_COLUMNS[:1])["row"].unique())
        except ResultsError:
            return []

    def titles(self) -> tuple[dict[str, str], frozenset[str]]:
        """The rows' titles as the table's layout has them, and its upper bounds; none if there is
        no layout that can be read.
        """
        try:
            layout = json.loads(self.path("layout.json").read_text(encoding="utf-8"))["layout"]
            return {**layout["rows"]}, frozenset(layout["oracles"])
        except (OSError, ValueError, KeyError, TypeError):
            return {}, frozenset()

    def write_records(self, records: Iterable[Record]) -> None:
        write_atomic(self.path("records.jsonl"), records_text(records))


def format_value(value: float | str | None) -> str:
    """A cell as text: of a number the shortest that reads back as the same, empty for None."""
    if value is None:
        return ""
    return repr(value) if isinstance(value, float) else str(value)


def parse_value(text: str, kind: type[float | str] = float) -> float | str | None:
    """The number that a text is, or the text itself; None for an empty one."""
    if not text:
        return None
    try:
        return text if "_" in text else kind(text)
    except ValueError:
        return text


def summarise(records: Sequence[Record]) -> pd.DataFrame:
    """The lines of a table's CSV (`Line`) under `CSV_COLUMNS`: per row, column and metric the mean
    over seeds, std (n - 1) and n (`fedtables.results.frame.over_seeds`).

    Holds only what the seeds determine. A cell that failed for any seed is listed with its reason
    and no value.
    """
    lines = [_line(line) for line in over_seeds(tidy(records)).to_dict("records")]
    return pd.DataFrame(lines, columns=list(CSV_COLUMNS), dtype=object)


def _line(found: Mapping[Hashable, Any]) -> dict[str, Any]:
    """A line of `over_seeds` as the CSV has it."""
    line: dict[str, Any] = {
        str(name): None if value != value else value for name, value in found.items()
    }
    failed = line["status"] != OK
    value: float | str | None = line["text"]
    if value is None and not failed:
        value = math.nan if line["value"] is None else line["value"]
    printed = line["published"] if line["published_text"] is None else line["published_text"]
    counts = {name: None if line[name] is None else int(line[name]) for name in ("defined", "of")}
    return {
        **line,
        "column": f"{line['column']} {line['detail']}".strip(),
        "value": value,
        "published": printed,
        "difference": difference_of(value, printed),
        "status": f"failed: {line['reason']}" if failed else OK,
        **counts,
    }


def difference_of(value: float | str | None, printed: float | str | None) -> float | str | None:
    """Measured minus published, of which two short decimals leave one; of texts whether they are
    the same; None where there is none.
    """
    if isinstance(value, str):
        return None if printed is None else "same" if value == printed else "differs"
    if value is None or not isinstance(printed, float):
        return None
    difference = round(value - printed, 12)
    return difference if math.isfinite(difference) else None


def records_of(lines: pd.DataFrame) -> list[Line]:
    """The lines one by one, for what is written, drawn or judged cell by cell."""
    return cast(list[Line], lines.to_dict("records"))


def write_csv(
    path: Path, lines: pd.DataFrame | Sequence[Line], columns: Sequence[str] = CSV_COLUMNS
) -> None:
    """Write the named columns of lines, by default a table's, in one step, so that no spreadsheet
    runs them (`quoted`).
    """
    frame = pd.DataFrame(lines, columns=list(columns), dtype=object)
    frame = frame.map(lambda value: quoted(format_value(value)))
    write_atomic(path, frame.to_csv(index=False, lineterminator="\n"))


def write_sealed_csv(path: Path, lines: Sequence[Line]) -> None:
    """Write lines of text, with the columns of the first, in one step; a last column `check` tells
    whether a line is as it was written, and in its place.
    """
    checked = [{**line, CHECK: _check(line, n, len(lines))} for n, line in enumerate(lines)]
    write_csv(path, checked, list(checked[0]))


def read_sealed_csv(path: Path, required: Sequence[str], others: Sequence[str]) -> list[Line]:
    """What `write_sealed_csv` was given, or an older version wrote without checks. Raises
    ResultsError if the file is damaged, lacks one of the `required` columns, or has one that is
    neither of these nor of the `others`.
    """
    lines = records_of(read_csv(path, required))
    for name in lines[0] if lines else ():
        if name not in (*required, *others, CHECK):
            raise ResultsError(
                f"{path} has a column {name!r}, which nothing of this suite writes; regenerate the"
                " table with `fedtables reproduce`"
            )
    for number, line in enumerate(lines):
        rest = {name: text for name, text in line.items() if name != CHECK}
        if CHECK in line and line[CHECK] != _check(rest, number, len(lines)):
            raise ResultsError(
                f"{path} line {number + 2} is not as it was written; regenerate the table with"
                " `fedtables reproduce`"
            )
    return lines


def _check(line: Line, number: int, of: int) -> str:
    return digest([number, of, dict(line)])[:8]


def read_csv(path: Path, required: Sequence[str] = CSV_COLUMNS[:6]) -> pd.DataFrame:
    """The lines of a table's CSV (`Line`), with as many columns as its version wrote; what should
    be a number and is none stays a text. Raises ResultsError if the file is missing, damaged, or
    lacks one of the `required` columns.
    """
    try:
        return _parsed(path.read_bytes().decode(), required)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ResultsError(
            f"cannot read {path}: {error}. Regenerate it with `fedtables reproduce`."
        ) from error
    except ValueError as error:
        raise ResultsError(f"{path} {error}") from error


def _parsed(text: str, required: Sequence[str]) -> pd.DataFrame:
    """The same of a CSV's text. Raises csv.Error for text that is no CSV, ValueError for one that
    is damaged or no table.
    """
    header, *lines = list(csv.reader(io.StringIO(text, newline=""), strict=True)) or [[]]
    missing = [column for column in required if column not in header]
    if missing:
        raise ValueError(f"is not a table of this suite: no column {', '.join(missing)}")
    for number, line in enumerate(lines, 2):
        if len(line) != len(header):
            raise ValueError(
                f"line {number}: {len(line)} fields under {len(header)} headings; the file is"
                " damaged, regenerate the table"
            )
    plain = [[unquoted(cell) for cell in line] for line in lines]
    frame = pd.DataFrame(plain, columns=header, dtype=object)
    is_text = [line.get("metric") in TEXTS for line in frame.to_dict("records")]
    for name in frame.columns.intersection(list(NUMBERS)):
        kind = int if name in COUNTS else float
        kinds = [str if text and name in OF_TEXTS else kind for text in is_text]
        cells = [parse_value(*cell) for cell in zip(frame[name], kinds, strict=True)]
        frame[name] = pd.Series(cells, dtype=object)
    return frame


def quoted(value: Any) -> Any:
    """A cell as it is written: a text that a spreadsheet would run, or that reads as if it had been
    quoted, with a quote before it. Numbers, as texts too, stay as they are.
    """
    if not isinstance(value, str) or not value.startswith((*RUN, *QUOTED)) or _is_number(value):
        return value
    return QUOTE + value


def unquoted(text: str) -> str:
    """The cell that `quoted` was given."""
    return text[1:] if text.startswith(QUOTED) else text


def _is_number(text: str) -> bool:
    try:
        return not math.isnan(float(text)) and text == text.strip() and "_" not in text
    except ValueError:
        return False
