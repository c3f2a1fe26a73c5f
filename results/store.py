"""Records on disk: the cell cache that makes a run resumable, and the files a table leaves behind.

A finished cell is written twice. Its record goes to the cell cache under `$FEDTABLES_CACHE` as soon
as it ends; that copy is what a later run trusts, after checking its digest and the code it came
from. When the command ends, the table's CSV and the records beside it are written to the results
folder; they are output, for people and for git. No number is ever read back from there: the records
only tell which other cells belong into the table.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

from filelock import FileLock

from results.files import (
    ResultsError,
    cache_home,
    canonical_json,
    digest,
    read_sealed_json,
    write_atomic,
    write_sealed_json,
)
from results.published import published_table
from results.record import OK, Record

CSV_COLUMNS = (
    "row",
    "column",
    "metric",
    "value",
    "std",
    "n",
    "published",
    "difference",
    "status",
    "bytes_up",
    "bytes_down",
    "epsilon",
    "delta",
    "data",
    "origin",
    "profile",
    "protocol",
    "seeds",
    "public",
    "public_origin",
    "statistic",
    "private",
    "private_origin",
)
"""The first six are those of `results/published/`, so that the two files join."""


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
        if value is None:
            return None, "damaged cache entry"
        if value.get("code") != code:
            return None, "computed by other code or packages"
        return Record.from_json(value), ""

    def lock(self, name: str) -> FileLock:
        """A lock between processes that write the files of one table."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return FileLock(self.folder / f"{digest(name)[:16]}.lock")

    def put(self, record: Record) -> None:
        write_sealed_json(self._path(record.cell), record.to_json())


class TableFiles:
    """The files of one table in the results folder: `<table>.csv`, `.md`, `.png`, `.svg`,
    `.records.jsonl` and more.
    """

    def __init__(self, folder: Path, profile: str, table: str, variant: str = ""):
        paper, name = table.split("/")
        stem = f"{name}.{variant}" if variant else name
        self.base = folder / profile / paper / stem

    def path(self, suffix: str) -> Path:
        """`suffix` is `csv`, `md`, `png`, `svg`, `claims.csv`, `layout.json`, `records.jsonl`,
        `safetensors` or `log`.
        """
        return self.base.parent / f"{self.base.name}.{suffix}"

    def check_writable(self) -> None:
        """Raise ResultsError now rather than after an hour of training."""
        probe = self.path("probe")
        write_atomic(probe, "")
        probe.unlink(missing_ok=True)

    def listed_cells(self) -> dict[str, Record]:
        """Records beside the table by cell. They tell which cells it has and which failed; numbers
        come from the cache.
        """
        path = self.path("records.jsonl")
        found = {}
        for line in path.read_text().splitlines() if path.exists() else ():
            with contextlib.suppress(ValueError, KeyError, TypeError):
                record = Record.from_json(json.loads(line))
                found[record.cell] = record
        return found

    def write_records(self, records: Iterable[Record]) -> None:
        write_atomic(
            self.path("records.jsonl"), "".join(canonical_json(r.to_json()) + "\n" for r in records)
        )


def format_value(value: float | str | None) -> str:
    """Shortest text that reads back as the same number; empty for None."""
    if value is None:
        return ""
    return value if isinstance(value, str) else repr(float(value))


def summarise(records: Sequence[Record]) -> list[dict[str, str]]:
    """Lines of a table's CSV: per row, column and metric the mean over seeds, std (n - 1) and n.

    Holds only what the seeds determine. A cell that failed for any seed is listed with its reason
    and no value. A measurement that some seeds lack is over the others; n says how many.
    """
    if not records:
        return []
    published = {(c.row, c.column, c.metric): c for c in published_table(records[0].table)}
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record.row, record.column), []).append(record)
    lines = []
    for (row, column), group in groups.items():
        group = sorted(group, key=lambda r: r.seed)
        failed = [r for r in group if r.status != OK]
        first = group[0]
        common = {
            "row": row,
            "status": "ok" if not failed else f"failed: {failed[0].reason}",
            "bytes_up": str(first.bytes_up),
            "bytes_down": str(first.bytes_down),
            "epsilon": format_value(
                max((r.epsilon for r in group if r.epsilon is not None), default=None)
            ),
            "delta": format_value(first.delta),
            "data": "+".join(source.get("used", "") for source in (first.data, *first.others)),
            "origin": "+".join(
                dict.fromkeys(source.get("origin", "") for source in (first.data, *first.others))
            ),
            "profile": first.profile,
            "protocol": first.protocol,
            "seeds": " ".join(str(r.seed) for r in group),
            "public": first.public.get("used", ""),
            "public_origin": first.public.get("origin", ""),
            "statistic": first.statistic,
            "private": first.private.get("used", ""),
            "private_origin": first.private.get("origin", ""),
        }
        if failed:
            lines.append({**dict.fromkeys(CSV_COLUMNS, ""), **common, "column": column, "n": "0"})
            continue
        # Which measurements there are may hang on the data of a seed: an AUC without positives is
        # not defined.
        by_name = [{(m.metric, m.column): m.value for m in record.measurements} for record in group]
        for metric, suffix in dict.fromkeys(name for found in by_name for name in found):
            values = [found[metric, suffix] for found in by_name if (metric, suffix) in found]
            numbers = [v for v in values if isinstance(v, float | int)]
            full_column = f"{column} {suffix}".strip()
            line = {
                **dict.fromkeys(CSV_COLUMNS, ""),
                **common,
                "column": full_column,
                "metric": metric,
            }
            printed = published.get((row, full_column, metric))
            line["n"] = str(len(values))
            if len(numbers) == len(values):
                mean = math.fsum(numbers) / len(numbers)
                line["value"] = format_value(mean)
                line["std"] = format_value(statistics.stdev(numbers)) if len(numbers) > 1 else ""
                if printed is not None and isinstance(printed.value, float):
                    line["difference"] = format_value(round(mean - printed.value, 12))
            else:
                line["value"] = " | ".join(dict.fromkeys(str(v) for v in values))
                if printed is not None:
                    line["difference"] = (
                        "same" if line["value"] == str(printed.value) else "differs"
                    )
            line["published"] = format_value(printed.value) if printed is not None else ""
            lines.append(line)
    return lines


def write_csv(
    path: Path, lines: Sequence[dict[str, str]], columns: Sequence[str] = CSV_COLUMNS
) -> None:
    """Write the lines of a table's CSV in one step."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    write_atomic(path, buffer.getvalue())


def read_csv(path: Path) -> list[dict[str, str]]:
    """Lines of a table's CSV. Raises ResultsError if the file is missing or is not such a CSV."""
    try:
        with path.open(newline="") as stream:
            reader = csv.DictReader(stream)
            missing = [c for c in CSV_COLUMNS[:6] if c not in (reader.fieldnames or ())]
            if missing:
                raise ResultsError(
                    f"{path} is not a table of this suite: no column {', '.join(missing)}"
                )
            return list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ResultsError(
            f"cannot read {path}: {error}. Regenerate it with `python -m benchmarks reproduce`."
        ) from error
