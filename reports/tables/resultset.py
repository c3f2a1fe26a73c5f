"""Reads a result set: tables' CSVs and the records beside them. A damaged file is named and never
half read.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from metrics.names import TEXTS
from reports.tables.units import unit_of
from results.files import ResultsError
from results.record import Record
from results.store import CSV_COLUMNS, summarise

REQUIRED = CSV_COLUMNS[: CSV_COLUMNS.index("public")]
"""Columns of every version of a table's CSV; those after them came later."""
OTHERS = frozenset({"attack", "partitions", "published"})
"""Folders of a results folder whose CSVs are no tables."""

Cell = Mapping[str, str]
Key = tuple[str, str, str, str]
"""Table, row, column, metric; a cell that failed has no metric."""


@dataclass(frozen=True)
class ResultSet:
    """What `reproduce` left of one or more tables."""

    cells: Mapping[Key, Cell]
    """Lines of the CSVs, with `unit`: how the table prints shares."""
    records: Mapping[str, Sequence[Record]]
    """By table; empty for a table without records beside it."""


def read_pair(base: Path, new: Path) -> tuple[ResultSet, ResultSet]:
    """Two result sets to be compared: two folders, or the CSVs of one table under whatever names.

    Raises ResultsError for a path that does not exist, for a file beside a folder and for a damaged
    file.
    """
    for path in (base, new):
        if not path.exists():
            raise ResultsError(
                f"{path} does not exist; give a CSV or a folder written by `python -m benchmarks"
                " reproduce`"
            )
    if base.is_dir() != new.is_dir():
        raise ResultsError(
            f"{base} and {new} are a folder and a file; give two folders, or the CSVs of one table"
        )
    return read_set(base), read_set(new, base.stem)


def read_set(path: Path, name: str = "") -> ResultSet:
    """The result set in a table's CSV, which is called `name` if given, or in a folder of them.

    Raises ResultsError if there is none, or if a file is damaged.
    """
    if path.is_file():
        files = {name or path.stem: path}
    else:
        found = (p for p in sorted(path.rglob("*.csv")) if not p.name.endswith(".claims.csv"))
        relative = {p.relative_to(path): p for p in found}
        files = {
            r.with_suffix("").as_posix(): p
            for r, p in relative.items()
            if OTHERS.isdisjoint(r.parts)
        }
    if not files:
        raise ResultsError(
            f"{path} holds no table of this suite; give a CSV or a folder written by `reproduce`"
        )
    cells: dict[Key, Cell] = {}
    records = {}
    for table, file in files.items():
        lines = read_table(file)
        records[table] = read_records(file.with_suffix(".records.jsonl"))
        check_agree(file, lines, records[table])
        # Without records the folder is the paper, and what follows a dot (`table1.released`) the
        # protocol.
        key = (
            records[table][0].table
            if records[table]
            else f"{file.resolve().parent.name}/{file.stem.split('.')[0]}"
        )
        paper, _, printed = key.partition("/")
        numbers: dict[str, list[float]] = defaultdict(list)
        for line in lines:
            if line["metric"] and line["metric"] not in TEXTS:
                numbers[line["metric"]].append(float(line["value"]))
        units = {
            metric: unit_of(paper, printed, metric, filter(math.isfinite, v))
            for metric, v in numbers.items()
        }
        for line in lines:
            cells[table, line["row"], line["column"], line["metric"]] = {
                **line,
                "unit": units.get(line["metric"], ""),
            }
    return ResultSet(cells, records)


def check_agree(path: Path, lines: Sequence[Cell], records: Sequence[Record]) -> None:
    """Raise ResultsError if the CSV at `path` has another value for a cell than the records beside
    it.
    """
    ours = {(line["row"], line["column"], line["metric"]): line for line in lines}
    for line in summarise(records):
        place = (line["row"], line["column"], line["metric"])
        if place not in ours or any(
            ours[place][name] != line[name]
            for name in ("value", "std", "n", "bytes_up", "bytes_down")
        ):
            raise ResultsError(
                f"{path} and its records differ in {' '.join(filter(None, place))}: one was edited;"
                " regenerate the table"
            )


def read_table(path: Path) -> list[Cell]:
    """The lines of a table's CSV. Raises ResultsError, with the line, if anything in it is not as
    it was written.
    """
    try:
        text = path.read_text(encoding="utf-8")
        lines = list(csv.reader(io.StringIO(text), strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ResultsError(
            f"cannot read {path}: {error}. Regenerate it with `python -m benchmarks reproduce`."
        ) from error
    header = lines[0] if lines else []
    missing = [column for column in REQUIRED if column not in header]
    if missing:
        raise ResultsError(f"{path} is not a table of this suite: no column {', '.join(missing)}")
    found: dict[tuple[str, ...], Cell] = {}
    for number, values in enumerate(lines[1:], 2):
        line = dict(zip(header, values, strict=False))
        wrong = (
            f"{len(values)} fields under {len(header)} headings"
            if len(values) != len(header)
            else _wrong(line)
        )
        if not wrong and (line["row"], line["column"], line["metric"]) in found:
            wrong = "the cell has a line already"
        if wrong:
            raise ResultsError(
                f"{path} line {number}: {wrong}; the file is damaged, regenerate the table"
            )
        found[line["row"], line["column"], line["metric"]] = line
    if not found or not text.endswith("\n"):
        raise ResultsError(
            f"{path} {'ends within its last line' if found else 'has no cells'}; regenerate the"
            " table"
        )
    return list(found.values())


def _wrong(line: Cell) -> str:
    """What in a line no table has; empty if nothing."""
    if line["status"] != "ok":
        failed = line["status"].startswith("failed") and not line["metric"] and not line["value"]
        return "" if failed else f"status {line['status']!r} of a cell with a metric or a value"
    if not line["metric"]:
        return "no metric"
    numbers = (
        ["std", "epsilon", "delta"]
        if line["metric"] in TEXTS
        else ["value", "std", "epsilon", "delta"]
    )
    for name in numbers:
        if (line[name] or name == "value") and not _is_number(line[name]):
            return f"{name} {line[name]!r} is not a number"
    if line["std"] and not float(line["std"]) >= 0 and math.isfinite(float(line["value"])):
        return f"std {line['std']!r} is none"
    if any(line[name] and not float(line[name]) > 0 for name in ("epsilon", "delta")):
        return "a privacy budget that is not above 0"
    for name, least in (("n", 2 if line["std"] else 1), ("bytes_up", 0), ("bytes_down", 0)):
        if not (line[name].isascii() and line[name].isdigit() and int(line[name]) >= least):
            return f"{name} {line[name]!r} is not a whole number from {least}"
    return ""


def _is_number(text: str) -> bool:
    if "_" in text:  # which Python would read
        return False
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_records(path: Path) -> list[Record]:
    """The records beside a table, of this or a later version of the suite; none if there is no such
    file.

    Raises ResultsError, with the line, for a damaged file.
    """
    records = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    except (OSError, UnicodeDecodeError) as error:
        raise ResultsError(f"cannot read {path}: {error}") from error
    for number, line in enumerate(lines, 1):
        try:
            value = json.loads(line)
            record = Record.from_json(
                {name: value[name] for name in Record.__dataclass_fields__ if name in value}
            )
            objects = (
                record.data,
                record.public,
                record.private,
                *record.others,
                record.machine,
                record.stages,
            )
            if not all(isinstance(x, dict) for x in objects):
                raise TypeError("a field is no object")
            float(record.seconds), float(record.peak_memory_mb)
        except (ValueError, KeyError, TypeError) as error:
            raise ResultsError(
                f"{path} line {number} is no record: {error}; regenerate the table"
            ) from error
        records.append(record)
    return records
