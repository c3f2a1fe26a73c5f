"""Result sets for tests of what compares them."""

import json

from fedtables.reports.comparing.compare import compare_results
from fedtables.reports.comparing.rule import COST, Rule
from fedtables.reports.tables.resultset import read_set
from fedtables.results.record import Measurement
from fedtables.results.store import CSV_COLUMNS, records_of, summarise, write_csv
from tests.records import made_record

BASE = {
    "row": "a",
    "column": "n=1",
    "metric": "accuracy",
    "value": "0.9",
    "std": "",
    "n": "1",
    "status": "ok",
    "bytes_up": "10",
    "bytes_down": "0",
    "profile": "smoke",
    "protocol": "paper",
    "data": "digits",
    "origin": "surrogate",
    "seeds": "0",
}


def line(**changes: str) -> dict[str, str]:
    return {**dict.fromkeys(CSV_COLUMNS, ""), **BASE, **changes}


def result_set(tmp_path, name, *lines):
    path = tmp_path / name / "t.csv"
    write_csv(path, lines)
    return path.parent


def differences(base, new, **rule):
    return compare_results(read_set(base), read_set(new), Rule(**rule))


def verdicts(base, new):
    """Of the cells."""
    return [d.verdict for d in differences(base, new) if d.kind != COST]


RUN = {
    "hardware": "A",
    "cores": 2,
    "device": "cpu",
    "threads": 1,
    "precision": "fp32",
    "compile": "off",
    "stacked": 1,
}


def record(**changes):
    whole = {
        "data": {"digest": "1"},
        "seconds": 30.0,
        "stages": {"computed": 2},
        "peak_memory_mb": 500.0,
        "machine": RUN,
    }
    return made_record(**{"column": "n=1", **whole, **changes})


def with_records(tmp_path, name, *records):
    folder = result_set(tmp_path, name, line(), line(row="b"))
    (folder / "t.records.jsonl").write_text(
        "".join(json.dumps(r.to_json()) + "\n" for r in records)
    )
    return folder


def written(tmp_path, name, one):
    """A set of one record, with the CSV that belongs to it."""
    folder = result_set(tmp_path, name, *records_of(summarise([one])))
    (folder / "t.records.jsonl").write_text(json.dumps(one.to_json()) + "\n")
    return folder


def measured(value=0.9, **changes):
    return record(measurements=(Measurement("accuracy", value),), **changes)
