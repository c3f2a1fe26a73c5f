"""Records as one tidy pandas DataFrame: a line per cell, metric and seed.

    from fedtables.results import frame
    frame.load("results/cpu").groupby(["table", "row", "metric"])["value"].mean()

Values are in the unit of print, so `value`, `published` and `difference` go together without
conversion. Which way is better is in `fedtables.metrics.names.facts(metric).better`.
"""

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fedtables.results.files import RECORDS, ResultsError, canonical_json, with_seal, without_seal
from fedtables.results.names import printable
from fedtables.results.published import parse_column, published_table
from fedtables.results.record import OK, Measurement, Record

COLUMNS = (
    *("file", "profile", "protocol", "variant", "paper", "table", "row", "column", "detail"),
    *("metric", "seed", "value", "defined", "of", "text", "unit"),
    *("published", "published_std", "published_text", "difference", "status", "reason"),
    *("bytes_up", "bytes_down", "epsilon", "delta", "data", "origin", "public", "public_origin"),
    *("private", "private_origin", "statistic", "settled", "contract", "seconds"),
    *("local_samples", "server_samples", "peak_memory_mb"),
    *("device", "commit", "dirty", "finished"),
)
"""`file` and `variant` (`released` of `table1.released`) are those of the records' file; `table` is
without the paper. `column` and `detail` (`epoch=3` of a curve) hold `key=value` pairs. A number is
in `value`, a text (a list of classes) in `text`, and so for the printed ones; the other is missing.
`defined` of `of` values is a mean (`fedtables.results.record.Measurement`), missing where they were
not counted. `unit` is that of print, empty for what is not printed. `settled` is `yes`, `no` for a
run that was cut short, and empty where no history tells. `contract` says what promise of a method a
plug-in's row breaks. `epsilon` and `delta` are missing where no privacy was claimed,
`local_samples` and `server_samples` where a record is older than they are. A cell that failed has
one line, with no metric, `status` `failed` and the reason; a cell that measured nothing has such a
line too."""
SUMMARY = (
    *COLUMNS[: COLUMNS.index("seed")],
    "seeds",
    "n",
    "value",
    "std",
    *COLUMNS[COLUMNS.index("defined") : COLUMNS.index("seconds")],
)
"""The columns of `over_seeds`."""
NUMBERS = (
    *("value", "std", "defined", "of", "published", "published_std", "difference"),
    *("epsilon", "delta"),
)
NOTHING = Measurement("", float("nan"))
REGENERATE = (
    "Restore the file, or move it away and regenerate the table: what is finished is in the cache."
)


def read_records(path: Path) -> list[Record]:
    """The records beside a table, of this or a later version of the suite; none if there is no such
    file.

    Raises ResultsError, with the line, for a damaged file; those of older versions tell less.
    """
    records = []
    fields = Record.__dataclass_fields__
    try:
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    except (OSError, UnicodeDecodeError) as error:
        raise ResultsError(f"cannot read {path}: {error}") from error
    places = []
    for number, line in enumerate(lines, 1):
        try:
            value, place = without_seal(json.loads(line), fields)
            records.append(Record.from_json({n: value[n] for n in fields if n in value}))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ResultsError(
                f"{path} line {number} is not a record: {error}. {REGENERATE}"
            ) from error
        places.append(place)
    if path.exists() and not lines:
        raise ResultsError(f"{path} is empty. {REGENERATE}")
    if any(places) and places != [[number, len(lines)] for number in range(1, len(lines) + 1)]:
        raise ResultsError(f"{path} lacks lines, or has others than were written. {REGENERATE}")
    return records


def records_text(records: Iterable[Record]) -> str:
    """What `read_records` reads: a line each, sealed with its number and how many there are."""
    values = [json.loads(canonical_json(record.to_json())) for record in records]
    return "".join(
        json.dumps(with_seal(value, number, len(values)), separators=(",", ":")) + "\n"
        for number, value in enumerate(values, 1)
    )


def load(folder: Path | str) -> pd.DataFrame:
    """Read all records under a folder, at any depth.

    Returns:
        A line per cell, metric and seed, with the columns `COLUMNS`.

    Raises:
        ResultsError: there are no records, or a file is damaged; the message names file and line.
    """
    folder = Path(folder)
    parts = []
    for path in sorted(folder.rglob(f"*{RECORDS}")):
        part = tidy(read_records(path))
        name = path.name.removesuffix(RECORDS)
        part["file"] = path.relative_to(folder).as_posix()
        part["variant"] = [
            name.removeprefix(f"{table}.") if name.startswith(f"{table}.") else ""
            for table in part["table"]
        ]
        parts.append(part)
    if not any(len(part) for part in parts):
        raise ResultsError(
            f"{folder} holds no records; name a folder that was given to --results of `fedtables"
            " reproduce`"
        )
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


def tidy(records: Iterable[Record]) -> pd.DataFrame:
    """Records as `COLUMNS`, in their order; `file` and `variant` are empty."""
    lines = pd.DataFrame(
        [
            {**facts, **_measured(record, measurement)}
            for record in records
            for facts in (_facts(record),)
            for measurement in record.measurements or (NOTHING,)
        ]
    )
    if lines.empty:
        return pd.DataFrame(columns=list(COLUMNS))
    tables = (lines["paper"] + "/" + lines["table"]).unique()
    key = ["paper", "table", "row", "place", "metric"]
    lines = lines.assign(place=_place(lines)).merge(
        printed(tables).rename(columns={"column": "place"}),
        on=key,
        how="left",
        validate="many_to_one",
    )
    units = lines.groupby(["paper", "table", "metric"])["unit"].transform("first")
    return lines.assign(file="", variant="", unit=units.fillna(""), difference=_difference(lines))[
        list(COLUMNS)
    ]


def over_seeds(lines: pd.DataFrame) -> pd.DataFrame:
    """Average over seeds.

    Args:
        lines: what `load` or `tidy` returned.

    Returns:
        A line per cell and metric: `value` is the mean over seeds, `std` the standard deviation
        with n - 1 (missing for one seed), `n` the number of seeds, `seeds` their names.

    Seeds without a number are left out of the mean; `defined` and `of` then count over all seeds.
    Bytes and other facts are those of the first seed, `epsilon` is the largest. A cell that failed
    for any seed has one line, with n = 0.
    """
    if lines.empty:
        return pd.DataFrame(columns=list(SUMMARY))
    cell = lines.groupby(["file", "paper", "table", "row", "column"], sort=False).ngroup()
    lines = lines.assign(cell=cell).sort_values(["cell", "seed"], kind="stable")
    by_cell = lines.groupby("cell")
    cells = (
        by_cell.head(1)
        .set_index("cell")
        .assign(
            epsilon=by_cell["epsilon"].max(),
            seeds=by_cell["seed"].agg(lambda seeds: " ".join(map(str, dict.fromkeys(seeds)))),
        )
    )
    failed = lines[lines["status"] != OK].groupby("cell").head(1).set_index("cell")
    cells.loc[failed.index, ["status", "reason"]] = failed[["status", "reason"]]
    # Which measurements there are may hang on the data of a seed: an AUC without positives is not
    # defined.
    measured = lines[~lines["cell"].isin(failed.index) & (lines["metric"] != "")]
    of_metric = measured.groupby(["cell", "detail", "metric"], sort=False)
    runs = by_cell["seed"].nunique().to_dict()
    together = [_together(seeds, runs[key[0]]) for key, seeds in of_metric]
    names = ["value", "std", "n", "text", "defined", "of", "settled"]
    summary = of_metric[["unit", "published", "published_std", "published_text"]].first()
    summary = summary.reset_index().join(pd.DataFrame(together, columns=names))
    summary["difference"] = _difference(summary)
    nothing = pd.DataFrame({"cell": failed.index, "detail": "", "metric": "", "n": 0})
    summary = pd.concat([summary, nothing]).sort_values("cell", kind="stable")
    facts = [name for name in SUMMARY if name in cells and name not in summary]
    whole = summary.join(cells[facts], on="cell")[list(SUMMARY)].reset_index(drop=True)
    whole[["unit", "settled"]] = whole[["unit", "settled"]].astype(object).fillna("")
    return whole.astype({"n": int, **dict.fromkeys(NUMBERS, float)})


def _summary(
    values: Sequence[float], texts: Sequence[object]
) -> tuple[float, float, int, str | None]:
    """Mean, deviation, number and text of a measurement's seeds; of texts each once. What is
    infinite for a seed, as the epsilon of no privacy, has no deviation; what is no number for one
    is over the others.
    """
    missing = float("nan")
    if any(isinstance(text, str) for text in texts):
        both = (
            text if isinstance(text, str) else str(value)
            for value, text in zip(values, texts, strict=True)
        )
        return missing, missing, len(texts), " | ".join(dict.fromkeys(both))
    values = [value for value in values if not math.isnan(value)] or values[:1]
    if not all(map(math.isfinite, values)):
        return sum(values) / len(values), missing, len(values), None
    # Not pandas' own: these two round once, so the order of the seeds does not matter.
    mean = math.fsum(values) / len(values)
    return mean, statistics.stdev(values) if len(values) > 1 else missing, len(values), None


def _together(seeds: pd.DataFrame, runs: int) -> tuple[Any, ...]:
    """`_summary` of a measurement's seeds, of a cell that `runs` have; `defined` and `of`, of what
    was not counted seeds with it and all, where some lack it; and whether it had settled for all.
    """
    lacking = runs - len(seeds)
    defined, of = (len(seeds), runs) if lacking else (math.nan, math.nan)
    if not seeds["of"].isna().any():
        defined, of = seeds["defined"].sum(), seeds["of"].sum() + lacking * seeds["of"].iloc[0]
    settled = next((word for word in ("no", "", "yes") if word in set(seeds["settled"])), "")
    numbers = _summary(seeds["value"].tolist(), seeds["text"].tolist())
    return *numbers, float(defined), float(of), settled


def _difference(lines: pd.DataFrame) -> list[float]:
    """Measured minus published; the subtraction of two short decimals leaves one."""
    return [round(value, 12) for value in (lines["value"] - lines["published"]).tolist()]


def _place(lines: pd.DataFrame) -> pd.Series:
    """A line's column as the table's CSV and the published tables have it."""
    return (lines["column"] + " " + lines["detail"]).str.strip()


def printed(tables: Iterable[str]) -> pd.DataFrame:
    """The published numbers of each `paper/table`: a line per paper, table, row, column, metric."""
    cells = [
        {
            "paper": paper,
            "table": name,
            "row": cell.row,
            "column": cell.column,
            "metric": cell.metric,
            "unit": cell.unit,
            "published": cell.value if isinstance(cell.value, float) else None,
            "published_std": cell.std,
            "published_text": cell.value if isinstance(cell.value, str) else None,
        }
        for paper, _, name in (table.partition("/") for table in tables)
        for cell in published_table(f"{paper}/{name}")
    ]
    texts = ["paper", "table", "row", "column", "metric", "unit", "published_text"]
    kinds = {**dict.fromkeys(texts, object), "published": float, "published_std": float}
    return pd.DataFrame(cells, columns=list(kinds)).astype(kinds)


def with_keys(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines with a column for every key of `column` and `detail`, as text; empty where a cell
    has no such key.

    A key that is a column's name already (`epsilon`) becomes `column.epsilon`.
    """
    pairs = [
        parse_column(f"{column} {detail}")
        for column, detail in zip(lines["column"], lines["detail"], strict=True)
    ]
    keys = dict.fromkeys(key for pair in pairs for key in pair)
    return lines.assign(
        **{
            f"column.{key}" if key in lines else key: [pair.get(key, "") for pair in pairs]
            for key in keys
        }
    )


def _measured(record: Record, measurement: Measurement) -> dict[str, Any]:
    is_text = isinstance(measurement.value, str)
    return {
        "detail": measurement.column,
        "metric": measurement.metric,
        "value": math.nan if is_text else float(measurement.value),
        "text": measurement.value if is_text else None,
        "defined": _number(measurement.defined),
        "of": _number(measurement.of),
        "settled": {None: "", True: "yes", False: "no"}[record.settled.get(measurement.metric)],
    }


def _number(value: float | None) -> float:
    return math.nan if value is None else value


SAME = (
    *("profile", "protocol", "row", "column", "seed", "status", "bytes_up", "bytes_down"),
    *("seconds", "peak_memory_mb", "finished"),
)
"""What a line has as its record has it."""


def _facts(record: Record) -> dict[str, Any]:
    """What all measurements of a cell have in common."""
    paper, _, table = record.table.partition("/")
    sources = (record.data, *record.others)
    numbers = ("epsilon", "delta", "local_samples", "server_samples")
    return {
        **{name: getattr(record, name) for name in SAME},
        **{name: _number(getattr(record, name)) for name in numbers},
        "paper": paper,
        "table": table,
        "reason": printable(record.reason),
        "data": "+".join(source.get("used", "") for source in sources),
        "origin": "+".join(dict.fromkeys(source.get("origin", "") for source in sources)),
        "public": record.public.get("used", ""),
        "public_origin": record.public.get("origin", ""),
        "private": record.private.get("used", ""),
        "private_origin": record.private.get("origin", ""),
        "statistic": printable(record.statistic),
        "contract": printable("; ".join(record.contract)),
        "device": record.machine.get("device", ""),
        "commit": record.machine.get("commit", ""),
        "dirty": bool(record.machine.get("dirty")),
    }
