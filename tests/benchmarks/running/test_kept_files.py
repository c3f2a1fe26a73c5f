"""A command adds to a table's files, and takes nothing away."""

import tempfile
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from fedtables.benchmarks.commands.regeneration import judge_plugins
from fedtables.benchmarks.reporting.command import command_of
from fedtables.benchmarks.reporting.layout import layout_of
from fedtables.benchmarks.reporting.writing import write_numbers
from fedtables.benchmarks.running.events import record_of
from fedtables.benchmarks.running.runner import prepare, take_finished
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.cells import Cell
from fedtables.benchmarks.tables.selection import Selection
from fedtables.reports.pages.sheet import Sheet
from fedtables.results.files import RefusedError, ResultsError
from fedtables.results.frame import read_records
from fedtables.results.record import FAILED, OK, Measurement
from fedtables.results.store import CellCache, TableFiles, read_csv

TABLE = registry.find_table("dlad/table2")
ROWS = [row.key for row in TABLE[1].rows]
MEASURED = {"measurements": (Measurement("accuracy", 0.5),)}


def command(folder: Path, selection: Selection, lost=(), failing=(), broken=()):
    """A command whose cells all come out alike, but for those in `failing` rows and those, in
    `lost` rows, that it does not come to before its time is over; it finds that `broken` rows
    break the contract.
    """
    [run] = prepare([TABLE], selection, folder)
    run.broken.update(dict.fromkeys(broken, ("it forgets",)))
    take_finished([run], fresh=False)
    for cell in run.cells:
        if cell.key in run.records or cell.row in lost:
            continue
        failed = cell.row in failing
        record = record_of(cell, **({"status": FAILED, "reason": "it"} if failed else MEASURED))
        run.records[cell.key] = record
        if record.status == OK:
            CellCache().put(record)
    if run.records:
        write_numbers(run)
    return run


def held(folder: Path) -> tuple[set, set]:
    """Row, column and seed of every record, and row and column of every line of the CSV."""
    files = list(folder.rglob("table2.records.jsonl"))
    if not files:
        return set(), set()
    lines = read_csv(files[0].with_name("table2.csv"))
    records = {(r.row, r.column, r.seed) for r in read_records(files[0])}
    return records, set(zip(lines["row"], lines["column"], strict=True))


some_rows = st.lists(st.sampled_from(ROWS), min_size=1, max_size=3, unique=True)
selections = st.builds(
    lambda rows, columns, seeds, drop, add, threads: Selection(
        seeds=tuple(seeds),
        only={"dataset": columns} | ({"row": ",".join([*rows, *add])} if rows else {}),
        drop=tuple(name for name in drop if name not in rows),
        add=tuple(add),
        threads=threads,
    ),
    st.one_of(st.just([]), some_rows),
    st.sampled_from(["mnist", "fashion-mnist", "mnist,fashion-mnist"]),
    st.lists(st.integers(0, 3), min_size=1, max_size=2, unique=True),
    st.lists(st.sampled_from(ROWS), max_size=1),
    st.lists(st.sampled_from(["standalone", "centralized"]), max_size=1),
    st.sampled_from([1, 1, 1, 2]),
)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(selections, some_rows, some_rows), min_size=2, max_size=4))
def test_no_selection_loses_a_row_a_column_or_a_seed(commands):
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDTABLES_CACHE", f"{name}/cache")
        folder = Path(name) / "results"
        for selection, lost, failing in commands:
            records, lines = held(folder)
            try:
                command(folder, selection, lost, failing)
            except RefusedError:
                assert held(folder) == (records, lines)
            after_records, after_lines = held(folder)
            assert records <= after_records
            assert lines <= after_lines


def test_what_would_be_lost_is_named_before_anything_runs_and_may_be_lost_by_asking(tmp_path):
    mnist = Selection(only={"dataset": "mnist"})
    command(tmp_path, mnist)
    other = replace(mnist, threads=2, only={"dataset": "mnist", "row": ROWS[0]})
    message = "would lose .* more, .* give --replace"
    with pytest.raises(ResultsError, match=message):
        prepare([TABLE], other, tmp_path)
    command(tmp_path, replace(other, may_lose=True))
    assert {row for row, *_ in held(tmp_path)[0]} == {ROWS[0]}


def test_a_run_that_is_cut_short_leaves_the_files_that_it_would_empty(tmp_path):
    mnist = Selection(only={"dataset": "mnist"})
    command(tmp_path, mnist)
    before = {path: path.read_bytes() for path in tmp_path.rglob("table2.*")}
    with pytest.raises(ResultsError, match="is left as it was"):
        command(tmp_path, replace(mnist, threads=2), lost=ROWS[:2])
    assert {path: path.read_bytes() for path in tmp_path.rglob("table2.*")} == before


PLUGIN = """
from dataclasses import dataclass
from fedtables.federation.method import Method

@dataclass(frozen=True)
class Mine(Method):
    title = "My own"

    def fit(self, federation):
        return federation.networks.initial()
"""


def test_a_row_that_breaks_the_contract_stays_marked_where_its_plug_in_is_not_given(tmp_path):
    (tmp_path / "my_own.py").write_text(PLUGIN)
    folder, mnist = tmp_path / "results", {"dataset": "mnist"}
    with registry.used([tmp_path / "my_own.py"]):
        run = command(folder, Selection(only=mnist, add=("my-own",)), broken=["my-own"])
        before, first = held(folder), layout_of(run, run.all_records())
    Sheet(first, "", "", "final").write(run.files.path("layout.json"))
    run = command(folder, Selection(only={**mnist, "row": ROWS[0]}))
    assert held(folder) == before
    lines = read_csv(next(folder.rglob("table2.csv")))
    assert set(lines["contract"][lines["row"] == "my-own"]) == {"it forgets"}
    assert [row.key for row in run.left] == ["my-own"]
    again = layout_of(run, run.all_records())
    assert (again.rows["my-own"], again.notes) == (first.rows["my-own"], first.notes)
    assert first.rows["my-own"] == "My own ✗"
    words = command_of(run, run.all_records()).split()
    assert words[words.index("--plugin") + 1] == "my_own.py"


def test_a_plug_in_joins_the_row_of_another_that_is_not_given_again(tmp_path, monkeypatch):
    monkeypatch.setattr("fedtables.benchmarks.contract.promises.findings", lambda entry: ())
    folder, mnist = tmp_path / "results", {"dataset": "mnist"}
    for name in ("my_own", "another"):
        (tmp_path / f"{name}.py").write_text(PLUGIN)
        row = name.replace("_", "-")
        with registry.used([tmp_path / f"{name}.py"]):
            run = command(folder, Selection(only={**mnist, "row": row}, add=(row,)))
            judge_plugins(Console(quiet=True), [run])
    assert {row for row, *_ in held(folder)[0]} == {"my-own", "another"}
    assert run.broken.keys() == {"another"}


def test_what_another_command_with_another_cache_writes_meanwhile_is_kept(tmp_path, monkeypatch):
    folder, mnist = tmp_path / "results", {"dataset": "mnist"}
    [slow] = prepare([TABLE], Selection(only={**mnist, "row": ROWS[0]}), folder)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("FEDTABLES_CACHE", str(tmp_path / "other"))
        command(folder, Selection(only={**mnist, "row": "global-avg"}))
    slow.records = {cell.key: record_of(cell, **MEASURED) for cell in slow.cells}
    write_numbers(slow)
    assert {row for row, *_ in held(folder)[0]} == {ROWS[0], "global-avg"}


def test_numbers_that_other_code_writes_meanwhile_are_not_mixed_in(tmp_path, monkeypatch):
    folder, mnist = tmp_path / "results", {"dataset": "mnist"}
    [slow] = prepare([TABLE], Selection(only={**mnist, "row": ROWS[0]}), folder)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("FEDTABLES_CACHE", str(tmp_path / "other"))
        elsewhere.setattr(Cell, "code", "another")
        command(folder, Selection(only={**mnist, "row": "global-avg"}))
    slow.records = {cell.key: record_of(cell, **MEASURED) for cell in slow.cells}
    with pytest.raises(ResultsError, match="is left as it was"):
        write_numbers(slow)


def test_the_files_of_a_table_are_locked_whatever_the_cache(tmp_path, monkeypatch):
    entered = threading.Event()

    def other():
        with TableFiles(tmp_path, "smoke", "dlad/table2").locked():
            entered.set()

    thread = threading.Thread(target=other)
    with TableFiles(tmp_path, "smoke", "dlad/table2").locked():
        monkeypatch.setenv("FEDTABLES_CACHE", str(tmp_path / "other"))
        thread.start()
        assert not entered.wait(0.2)
    thread.join(10)
    assert entered.is_set()


def test_rows_of_a_csv_without_records_are_kept_too(tmp_path):
    command(tmp_path, Selection(only={"dataset": "mnist"}))
    [path] = tmp_path.rglob("table2.records.jsonl")
    path.unlink()
    with pytest.raises(ResultsError, match="would lose "):
        prepare([TABLE], Selection(only={"dataset": "mnist", "row": ROWS[0]}), tmp_path)
