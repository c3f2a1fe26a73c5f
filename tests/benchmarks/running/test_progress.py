"""Progress while a command runs, as wide as the terminal, and in TensorBoard's files."""

import io
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from fedtables.benchmarks.running.events import Event
from fedtables.benchmarks.running.progress import Live, TensorBoard, progress_bar
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection
from fedtables.benchmarks.tables.spec import SpecError
from tests.reports.written_results import record


@pytest.mark.parametrize("width", [80, 60])
def test_a_narrow_terminal_cuts_what_is_done_and_not_the_time_that_is_left(width):
    console = Console(file=io.StringIO(), width=width)
    bar = progress_bar(console)
    bar.add_task("fediod gan=eq2 mimic=eq8 tau=inf conf unique: client 3, epoch 12", total=4)
    task = bar.add_task("cells", total=3)
    bar.tasks[1].finished_time = 7.0
    bar.update(task, completed=3)
    console.print(bar.get_renderable())
    long, short = console.file.getvalue().splitlines()
    assert "fediod" in long
    assert "…" in long
    assert long.rstrip().endswith("left -:--:--")
    assert short.rstrip().endswith("100% 0:00:07 left 0:00:00")


@pytest.fixture
def cell():
    only = {"row": "global-dlad", "dataset": "mnist", "distribution": "iid"}
    [found] = expand(*registry.find_table("dlad/table2"), Selection(only=only))
    return found


@pytest.mark.parametrize(("piped", "count"), [(True, " (1 of 2)"), (False, "")])
def test_a_run_whose_output_is_piped_prints_a_line_a_cell_with_its_number(cell, piped, count):
    """On a terminal the bar has the number."""
    console = Console(file=io.StringIO(), width=200, highlight=False, force_terminal=not piped)
    measured = record(cell.row, cell.column, 0.5)
    Live(console, 2).show(cell, Event("done", 0, record=replace(measured, seconds=3.0)))
    line = f"{cell.row} {cell.column} seed 0: 0.5 in 3.0 s{count}"
    assert console.file.getvalue().endswith(f"{line}\n")


def test_a_cell_that_is_run_again_says_so_and_why_in_a_line(cell):
    console = Console(file=io.StringIO(), width=200)
    live = Live(console, 2)
    live.show(cell, Event("again", 0, text="out of memory; run again alone\nTraceback ..."))
    expected = "again  global-dlad dataset=mnist distribution=iid seed 0: out of memory; run again"
    assert console.file.getvalue() == f"{expected} alone\n"


def test_every_cell_has_a_folder_and_every_series_its_steps(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with TensorBoard(tmp_path) as log:
        log("dlad/table2 a seed 0", "loss/client 1", 1, 2.5)
        log("dlad/table2 a seed 0", "loss/client 1", 2, 1.5)
        log("dlad/table2 b seed 0", "bytes/up", 1, 12.0)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "dlad-table2 a seed 0",
        "dlad-table2 b seed 0",
    ]
    written = EventAccumulator(str(tmp_path / "dlad-table2 a seed 0")).Reload()
    scalars = written.Scalars(*written.Tags()["scalars"])
    assert [(scalar.step, scalar.value) for scalar in scalars] == [(1, 2.5), (2, 1.5)]


def test_without_tensorboard_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(SpecError, match="python -m pip install 'tensorboard"):
        TensorBoard(tmp_path)
