"""Reads a result set: tables' CSVs and the records beside them. A damaged file is named and never
half read.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from fedtables.reports.tables.units import unit_of
from fedtables.results.files import ResultsError
from fedtables.results.frame import read_records
from fedtables.results.record import FAILED, OK, TEXTS, Record
from fedtables.results.store import (
    CSV_COLUMNS,
    PLACE,
    Line,
    difference_of,
    format_value,
    read_csv,
    records_of,
    summarise,
)

REQUIRED = CSV_COLUMNS[: CSV_COLUMNS.index("public")]
"""Columns of every version of a table's CSV; those after them came later."""
PRINTED = ("published", "difference")
OTHERS = frozenset({"attack", "partitions", "published", "pinned.csv"})
"""Folders of a results folder whose CSVs are no tables, and its list of tables that stand as of
their commit."""

Key = tuple[str, str, str, str]
"""Table, row, column, metric; a cell that failed has no metric."""


@dataclass(frozen=True)
class ResultSet:
    """What `reproduce` left of one or more tables."""

    cells: Mapping[Key, Line]
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
                f"{path} does not exist; give a CSV or a folder written by `fedtables reproduce`"
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
        paths = (p for p in sorted(path.rglob("*.csv")) if not p.name.endswith(".claims.csv"))
        relative = {p.relative_to(path): p for p in paths}
        files = {
            r.with_suffix("").as_posix(): p
            for r, p in relative.items()
            if OTHERS.isdisjoint(r.parts)
        }
    if not files:
        raise ResultsError(
            f"{path} holds no table of this suite; give a CSV or a folder written by `reproduce`"
        )
    cells: dict[Key, Line] = {}
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
        numbers = lines[~lines["metric"].isin(["", *TEXTS])]
        units = {
            str(metric): unit_of(paper, printed, str(metric), filter(math.isfinite, values))
            for metric, values in numbers.groupby("metric")["value"]
        }
        lines["unit"] = [units.get(metric, "") for metric in lines["metric"]]
        for line in records_of(lines):
            cells[table, line["row"], line["column"], line["metric"]] = line
    return ResultSet(cells, records)


def check_agree(path: Path, lines: pd.DataFrame, records: Sequence[Record]) -> None:
    """Raise ResultsError if the CSV at `path` says otherwise of a cell than the records beside it,
    but for what is printed, of which a later version may know better.
    """
    alike = [name for name in CSV_COLUMNS if name in lines and name not in PRINTED]
    both = summarise(records)[alike].merge(lines[alike], how="left", indicator=True)
    for line in records_of(both[both["_merge"] == "left_only"]):
        place = " ".join(filter(None, (line[name] for name in PLACE)))
        raise ResultsError(
            f"{path} and its records differ in {place}: one was edited; regenerate the table"
        )


def read_table(path: Path) -> pd.DataFrame:
    """The lines of a table's CSV. Raises ResultsError, with the line, if anything in it is
    not as it was written.
    """
    lines = read_csv(path, REQUIRED)
    if unknown := [name for name in lines if name not in CSV_COLUMNS]:
        raise ResultsError(f"{path} has a column {unknown[0]!r}, which no table has; regenerate it")
    repeated = lines.duplicated(PLACE)
    for number, (line, again) in enumerate(zip(records_of(lines), repeated, strict=True), 2):
        wrong = _wrong(line) or ("the cell has a line already" if again else "")
        if wrong:
            raise ResultsError(
                f"{path} line {number}: {wrong}; the file is damaged, regenerate the table"
            )
    if lines.empty or not path.read_bytes().endswith(b"\n"):
        raise ResultsError(
            f"{path} {'has no cells' if lines.empty else 'ends within its last line'}; regenerate"
            " the table"
        )
    return lines


def _wrong(line: Line) -> str:
    """What in a line no table has; empty if nothing."""
    if line["status"] != OK:
        failed = line["status"].startswith(FAILED) and not line["metric"] and line["value"] is None
        return "" if failed else f"status {line['status']!r} of a cell with a metric or a value"
    if not line["metric"]:
        return "no metric"
    is_text = line["metric"] in TEXTS
    for name in ("std", "epsilon", "delta", *(() if is_text else ("value",))):
        if not isinstance(line[name], float) and (line[name] is not None or name == "value"):
            return f"{name} {format_value(line[name])!r} is not a number"
    if line["std"] is not None and not line["std"] >= 0 and math.isfinite(line["value"]):
        return f"std {line['std']!r} is none"
    if any(line[name] is not None and not line[name] > 0 for name in ("epsilon", "delta")):
        return "a privacy budget that is not above 0"
    if not _alike(line["difference"], difference_of(line["value"], line["published"])):
        told = [format_value(line[name]) for name in ("difference", "value", "published")]
        return f"difference {told[0]!r} is not that of {told[1]} and {told[2]}"
    counted = (line.get("defined"), line.get("of")) != (None, None)
    wholes = {"n": 1 if line["std"] is None else 2, "bytes_up": 0, "bytes_down": 0}
    for name, least in {**wholes, **({"defined": 0, "of": 1} if counted else {})}.items():
        if not (isinstance(line[name], int) and line[name] >= least):
            return f"{name} {format_value(line[name])!r} is not a whole number from {least}"
    if counted and line["defined"] > line["of"]:
        return f"a mean of {line['defined']} of {line['of']} values"
    return ""


def _alike(given: float | str | None, right: float | str | None) -> bool:
    """Whether a difference is the right one, up to how older versions rounded it."""
    if isinstance(given, float) and isinstance(right, float):
        return math.isclose(given, right, rel_tol=1e-9, abs_tol=1e-11)
    return given == right
