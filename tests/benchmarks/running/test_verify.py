"""Recomputing recorded cells: what matches, what does not, and what cannot be judged."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from fedtables.benchmarks.running.events import record_of
from fedtables.benchmarks.running.verify import (
    MATCH,
    MISMATCH,
    NOT_VERIFIABLE,
    Verification,
    compare_records,
    draw,
    exit_code,
    finished_records,
    pinned_tables,
    rebuild,
)
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.benchmarks.tables.sweep import swept
from fedtables.federation.execution import Execution
from fedtables.results.files import DataError, ResultsError
from fedtables.results.record import FAILED, OK, Measurement, Record

PLUGIN = """
from dataclasses import dataclass
from fedtables.federation.method import Method

@dataclass(frozen=True)
class Own(Method):
    def fit(self, federation):
        return federation.networks.checkpoint(federation.networks.initial())
"""

# -- on real runs --


@pytest.fixture(scope="module")
def run(module_command, tmp_path_factory):
    """Results of two methods, one of them a plug-in."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "own.py").write_text(PLUGIN)
    words = (
        "reproduce dlad/table2 --only dataset=mnist --only distribution=niid1 --methods +own --only"
        " row=own,global-avg --set local.epochs=1 --set server.epochs=1 --jobs 1"
    )
    where = ("--plugin", str(folder / "own.py"), "--results", str(folder / "results"))
    done = module_command(*words.split(), *where)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def records_of(folder: Path, table: str) -> Path:
    [found] = (folder / "results").rglob(f"{table}*.records.jsonl")
    return found


def changed(path: Path, target: Path, change) -> Path:
    """A copy of records with `change` made to each."""
    lines = []
    for line in path.read_text().splitlines():
        value = json.loads(line)
        del value["sha256"]  # as an older version wrote it, or whoever hides a change
        change(value)
        lines.append(json.dumps(value))
    target.write_text("\n".join(lines) + "\n")
    return target


def test_what_was_just_computed_matches_to_the_last_digit_without_the_cache(run, command, tmp_path):
    options = ("--cells", "100", "--plugin", str(run / "own.py"), "--jobs", "1")
    done = command("verify", str(run / "results"), *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 of 2 finished cells drawn with seed 0" in done.stdout
    assert "2 match" in done.stdout
    assert "stages fit: 2 computed, 0 reused" in done.stdout
    assert {path.name for path in (tmp_path / "cache").glob("*")} <= {"data"}  # digests of data


def test_a_tampered_value_is_a_mismatch_with_both_numbers(run, command, tmp_path):
    def tamper(value):
        if value["row"] == "global-avg":
            value["measurements"][0]["value"] += 1e-9

    path = changed(records_of(run, "table2"), tmp_path / "t.records.jsonl", tamper)
    done = command("verify", str(path), "--jobs", "1")
    assert done.returncode == 1
    assert "1 mismatch, 1 not verifiable" in done.stdout  # the plug-in was not named
    assert "mismatch: accuracy" in done.stdout


def test_a_changed_configuration_or_other_data_cannot_be_verified(run, command, tmp_path):
    def other(value):
        if value["row"] == "global-avg":
            value["config"]["local.lr"] = 5.0

    path = changed(records_of(run, "table2"), tmp_path / "t.records.jsonl", other)
    done = command("verify", str(path))
    assert done.returncode == 2
    assert "2 not verifiable" in done.stdout
    assert "changed since" in " ".join(done.stdout.split())
    [record, _] = finished_records(records_of(run, "table2"))
    with pytest.raises(DataError, match="is not the data set of the record"):
        rebuild(replace(record, data={**record.data, "digest": "0"}))
    with pytest.raises(DataError, match="MNIST"):
        rebuild(replace(record, data={**record.data, "used": "mnist"}))


def test_a_tables_csv_leads_to_its_records_and_a_failed_cell_is_not_drawn(run, tmp_path):
    path = records_of(run, "table2")
    csv = path.with_name(path.name.replace(".records.jsonl", ".csv"))
    assert [record.row for record in finished_records(csv)] == [
        record.row for record in finished_records(path)
    ]
    failed = changed(path, tmp_path / "t.records.jsonl", lambda value: value.update(status=FAILED))
    with pytest.raises(ResultsError, match="no record of a finished cell"):
        finished_records(failed)


def test_a_swept_cell_is_rebuilt():
    paper, table = registry.find_table("fediod/table5")
    derived, _ = swept(paper, table, Selection(), ("2", "5"))
    for cell in expand(paper, derived, Selection(threads=2, execution=Execution(stacked=4))):
        machine = {"device": "cpu", "threads": 2, **asdict(cell.execution)}
        record = Record.from_json(
            json.loads(json.dumps(record_of(cell, machine=machine).to_json()))
        )
        assert rebuild(record) == cell


def test_a_cell_of_a_method_that_had_another_name_is_rebuilt_as_it_is_called_now():
    [cell] = expand(
        *registry.find_table("fediod/table1"),
        Selection(only={"row": "fedkd", "dataset": "cifar10", "alpha": "1"}),
    )
    config = {name.replace("fedkd-gong.", "fedkd."): value for name, value in cell.config}
    assert config.keys() != dict(cell.config).keys()
    before = replace(cell, method="fedkd", config=tuple(sorted(config.items())))
    machine = {"device": "cpu", "threads": 1, **asdict(cell.execution)}
    record = record_of(before, machine=machine, lineage=("fedkd",))
    assert rebuild(record) == cell
    with pytest.raises(SpecError, match="another digest"):
        rebuild(replace(record, lineage=("fedmd",)))


def result_set(folder, *tables, seconds=1.0):
    """A folder with a record of each of the tables."""
    for table in tables:
        path = folder / f"{table}.records.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        record = replace(RECORD, table=table, status=OK, seconds=seconds)
        path.write_text(json.dumps(record.to_json()) + "\n")
    return folder


def test_a_table_that_stands_as_of_its_commit_is_not_drawn(tmp_path):
    folder = result_set(tmp_path, "dlad/table2", "fedsa/table1", "fedsa/table1.sweep")
    assert len(finished_records(folder)) == 3
    (folder / "pinned.csv").write_text('table,why\nfedsa/table1,"other data, later"\n')
    assert pinned_tables(folder) == {"fedsa/table1": "other data, later"}
    assert [record.table for record in finished_records(folder)] == ["dlad/table2"]


def test_a_list_of_pinned_tables_that_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "pinned.csv").write_text("table,why\na,b,c\n")
    with pytest.raises(ResultsError, match="table,why"):
        pinned_tables(tmp_path)


def test_cells_that_take_long_are_left_out_where_that_is_asked(tmp_path):
    result_set(tmp_path, "dlad/table2", seconds=30.0)
    result_set(tmp_path, "dlad/table3", seconds=31.0)
    assert [r.table for r in finished_records(tmp_path, within=30)] == ["dlad/table2"]
    with pytest.raises(ResultsError, match="no record of a finished cell"):
        finished_records(tmp_path, within=29)


def test_cells_whose_data_are_elsewhere_are_left_out_where_that_is_asked(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDTABLES_DATA", str(tmp_path / "data"))
    for table, used in {"dlad/table2": "digits", "dlad/table3": "mnist"}.items():
        path = result_set(tmp_path, table) / f"{table}.records.jsonl"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"data": {"used": used}}) + "\n")
    assert len(finished_records(tmp_path)) == 2
    assert [r.table for r in finished_records(tmp_path, present=True)] == ["dlad/table2"]
    path.write_text(path.read_text().replace('"mnist"', '"mnits"'))
    assert len(finished_records(tmp_path, present=True)) == 2  # `rebuild` says what is wrong


@pytest.mark.parametrize("what", ["empty", "broken.records.jsonl"])
def test_what_holds_no_records_is_unusable(what, command, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.records.jsonl").write_text('{"row": "x"}\n')
    done = command("verify", str(tmp_path / what))
    assert done.returncode == 2
    assert "error:" in done.stderr


# -- by hand --

MACHINE = {
    "hardware": "a",
    "device": "cpu",
    "threads": 1,
    "packages": {"torch": "2.9", "numpy": "2.0"},
}
RECORD = Record(
    table="dlad/table2",
    row="global-avg",
    column="dataset=mnist",
    seed=0,
    seeds={},
    profile="smoke",
    protocol="paper",
    cell="c",
    code="d",
    measurements=(Measurement("accuracy", 0.5), Measurement("accuracy", 0.6, "epoch=2")),
    bytes_up=10,
    machine=MACHINE,
)


def value(number, column=""):
    return replace(
        RECORD, measurements=(Measurement("accuracy", number, column), RECORD.measurements[1])
    )


def test_on_the_same_machine_the_last_digit_counts():
    assert compare_records(RECORD, RECORD, "fraction") == ([], "to the last digit")
    differing, _ = compare_records(RECORD, value(0.5000000000000001), "fraction")
    assert differing == ["accuracy 0.5 -> 0.5000000000000001"]
    assert compare_records(value(float("nan")), value(float("nan")), "fraction")[0] == []


@pytest.mark.parametrize(
    ("unit", "number", "agree"),
    [("fraction", 0.5199, True), ("fraction", 0.5201, False), ("percent", 2.49, True)],
)
def test_elsewhere_two_points_of_accuracy_are_allowed_and_the_reason_is_told(unit, number, agree):
    packages = {"torch": "2.10", "numpy": "2.0", "scipy": "1"}  # which one record alone names
    machine = {**MACHINE, "hardware": "b", "packages": packages}
    new = replace(value(number), machine=machine)
    differing, rule = compare_records(RECORD, new, unit)
    assert (differing == []) is agree
    assert rule == "within tolerance, for hardware b, then a; torch 2.10, then 2.9"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"bytes_up": 11}, "bytes_up 10 -> 11"),
        ({"epsilon": 1.0}, "epsilon None -> 1.0"),
        ({"measurements": RECORD.measurements[:1]}, "accuracy epoch=2 is measured no longer"),
        (
            {"measurements": (Measurement("accuracy", "0-4"), RECORD.measurements[1])},
            "accuracy 0.5 -> '0-4'",
        ),
        ({"status": FAILED, "reason": "no memory"}, "failed: no memory"),
    ],
)
def test_bytes_epsilon_and_what_is_measured_must_be_equal_anywhere(changes, text):
    for machine in (MACHINE, {**MACHINE, "hardware": "b"}):
        assert compare_records(RECORD, replace(RECORD, machine=machine, **changes), "fraction")[
            0
        ] == [text]


def test_equal_seeds_draw_equal_cells_and_never_more_than_there_are():
    records = [replace(RECORD, seed=seed) for seed in range(20)]
    first = draw(records, 5, 1)
    assert first == draw(records, 5, 1) != draw(records, 5, 2)
    assert [record.seed for record in first] == sorted({record.seed for record in first})
    assert draw(records, 100, 0) == records


@pytest.mark.parametrize(
    ("words", "code"),
    [([MATCH, NOT_VERIFIABLE], 0), ([MATCH, MISMATCH, NOT_VERIFIABLE], 1), ([NOT_VERIFIABLE], 2)],
)
def test_the_exit_code_says_the_worst_that_is_known(words, code):
    assert exit_code([Verification(RECORD, word) for word in words]) == code
