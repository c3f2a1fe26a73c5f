"""Minutes a row: by records of the same cells, scaled to this machine, else by its speed."""

from dataclasses import replace

import pandas as pd
import pytest

from fedtables.benchmarks.running import plan
from fedtables.benchmarks.running.follow import PlannedCell
from fedtables.benchmarks.running.plan import make_plan, row_times, wall_of, within
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection
from fedtables.results.files import write_atomic
from fedtables.results.frame import records_text
from fedtables.results.record import Record

HERE = "AVX2, cpu family 6, model 1"
THERE = "AVX512, cpu family 26, model 2"
ONLY = {"dataset": "mnist", "distribution": "niid1", "row": "client-resnet,global-avg"}


@pytest.fixture
def cells(monkeypatch, tmp_path):
    """Two cells at smoke, of two rows that share the clients' networks, on a machine whose cores
    train 2,650 images of the standard load a second; no record is there yet.
    """
    monkeypatch.setattr(plan, "ROOT", tmp_path)
    monkeypatch.setattr(plan, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(plan, "kernels", lambda: HERE)
    monkeypatch.setattr(plan, "images_here", lambda: 2650.0)
    return expand(*registry.find_table("dlad/table2"), Selection(only=ONLY))


def recorded(tmp_path, cell, kernels, seconds, **changes):
    """One record of a cell, whose fit took so long."""
    done = Record(
        table=cell.table,
        row=cell.row,
        column=cell.column,
        seed=5,
        seeds={},
        profile=cell.profile,
        protocol=cell.protocol,
        cell="of older data",
        code="of older code",
        config=dict(cell.config),
        data={"used": cell.data.used},
        seconds=0.1,
        fit_seconds={"local": seconds, "server": 0.0},
        machine={"device": "cpu", "threads": 1, "kernels": kernels},
    )
    path = tmp_path / "results" / cell.profile / f"{cell.table}.records.jsonl"
    write_atomic(path, records_text([replace(done, **changes)]))


def at(speed):
    """Hours of a plan at so many FLOP/s."""
    return lambda plan: plan.work.flops / speed / 3600


def by_row(cells, speed):
    return {time.Index: time for time in row_times(cells, at(speed)).itertuples()}


def test_without_records_a_row_takes_its_work_by_the_speed(cells):
    """The clients' networks are computed once for both rows."""
    alone = {cell.row: make_plan([cell]).work.flops for cell in cells}
    together = make_plan(cells).work.flops
    times = by_row(cells, speed=1e6)
    for row, time in times.items():
        assert time.seconds == time.longest == pytest.approx(alone[row] / 1e6)
        assert not time.recorded
    assert sum(time.added for time in times.values()) == pytest.approx(together / 1e6)
    assert together < sum(alone.values())


@pytest.mark.parametrize(
    ("kernels", "seconds"),
    [(HERE, 30.0), (THERE, 60.0)],  # there a core trains 5,300 images in a second, twice as many
)
def test_a_record_of_the_same_cell_tells_its_seconds_scaled_to_this_machine(
    cells, tmp_path, kernels, seconds
):
    recorded(tmp_path, cells[0], kernels, 30.0)
    for speed in (1e6, 2e6):  # a measurement of a loaded moment changes nothing
        time = by_row(cells, speed)[cells[0].row]
        assert (time.seconds, time.recorded) == (pytest.approx(seconds), True)


def test_what_no_plan_counts_is_known_by_a_record_alone(cells, tmp_path, monkeypatch):
    """As attacks, of which nobody knows when they end."""
    monkeypatch.setattr(
        plan.Follower, "follow", lambda self, cell: PlannedCell("m", unplanned="attacks")
    )
    assert row_times(cells, at(1e6))["seconds"].isna().all()
    recorded(tmp_path, cells[0], HERE, 30.0)
    found = row_times(cells, at(1e6))
    assert by_row(cells, 1e6)[cells[0].row].seconds == 30.0
    assert wall_of(found, 2) == 30.0
    assert within(found, 2, 60) == [cells[0].row]


@pytest.mark.parametrize(
    "changes",
    [
        {"data": {"used": "another"}},
        {"config": {"local.epochs": 999}},
        {"machine": {"device": "cpu", "threads": 2, "kernels": HERE}},
        {"machine": {"device": "cpu", "threads": 1, "kernels": HERE, "precision": "bf16"}},
        {"machine": {"device": "cpu", "threads": 1, "kernels": "of a machine nobody measured"}},
    ],
)
def test_a_record_of_other_work_or_of_a_machine_nobody_measured_tells_nothing(
    cells, tmp_path, changes
):
    recorded(tmp_path, cells[0], HERE, 30.0, **changes)
    assert not by_row(cells, 1e6)[cells[0].row].recorded


ROWS = pd.DataFrame(
    {"seconds": [400.0, 240.0, 200.0], "longest": [100.0, 150.0, 200.0]}, index=list("abc")
).assign(added=[400.0, 140.0, 200.0])
"""`b` shares 100 seconds with `a`."""


def test_cells_run_side_by_side_but_no_faster_than_the_longest():
    assert wall_of(ROWS, 2) == 370.0
    assert wall_of(ROWS, 8) == 200.0


@pytest.mark.parametrize(
    ("limit", "rows"), [(100, []), (160, ["b"]), (220, ["c", "b"]), (420, ["c", "b", "a"])]
)
def test_the_shortest_rows_that_fit_a_limit_together(limit, rows):
    assert within(ROWS, 2, limit) == rows
