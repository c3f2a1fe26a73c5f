"""Progress while a command runs, as wide as the terminal."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from benchmarks.running.events import Event
from benchmarks.running.progress import Live, progress_bar
from benchmarks.tables import registry
from benchmarks.tables.expansion import expand
from benchmarks.tables.selection import Selection
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


@pytest.mark.parametrize(("piped", "count"), [(True, " (1 of 2)"), (False, "")])
def test_a_run_whose_output_is_piped_prints_a_line_a_cell_with_the_number_of_cells(piped, count):
    """On a terminal the bar has the number."""
    console = Console(file=io.StringIO(), width=200, highlight=False, force_terminal=not piped)
    only = {"row": "global-dlad", "dataset": "mnist", "distribution": "iid"}
    [cell] = expand(*registry.find_table("dlad/table2"), Selection(only=only))
    measured = record(cell.row, cell.column, 0.5)
    Live(console, 2).show(cell, Event("done", 0, record=replace(measured, seconds=3.0)))
    line = f"{cell.row} {cell.column} seed 0: 0.5 in 3.0 s{count}"
    assert console.file.getvalue().endswith(f"{line}\n")


def test_a_cell_that_is_run_again_says_so_and_why_in_a_line():
    console = Console(file=io.StringIO(), width=200)
    only = {"row": "global-dlad", "dataset": "mnist", "distribution": "iid"}
    [cell] = expand(*registry.find_table("dlad/table2"), Selection(only=only))
    live = Live(console, 2)
    live.show(cell, Event("again", 0, text="out of memory; run again alone\nTraceback ..."))
    expected = "again  global-dlad dataset=mnist distribution=iid seed 0: out of memory; run again"
    assert console.file.getvalue() == f"{expected} alone\n"
