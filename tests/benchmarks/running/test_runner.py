"""In which order a run takes its cells."""

from pathlib import Path
from typing import cast

from fedtables.benchmarks.running.runner import prepare, unfinished
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.selection import Selection
from fedtables.results.record import Record


def test_tables_are_taken_one_after_another_as_they_were_asked_for(tmp_path: Path) -> None:
    asked = [
        registry.find_table(name) for name in ("fediod/table6", "dlad/table2", "fediod/table7")
    ]
    runs = prepare(asked, Selection(), tmp_path)
    order = [cell.table for cell in unfinished(runs)]
    assert list(dict.fromkeys(order)) == [f"{paper.key}/{table.key}" for paper, table in asked]
    assert len(order) == sum(len(run.cells) for run in runs)
    assert order == sorted(order, key=list(dict.fromkeys(order)).index)  # none is come back to


def test_cells_that_share_a_fit_do_not_begin_together(tmp_path: Path) -> None:
    (run,) = prepare([registry.find_table("fediod/table8")], Selection(seeds=(0, 1)), tmp_path)
    order = unfinished([run])
    assert len(order) == 2 * 3 * 4
    fits = [(cell.column.split()[0], cell.seed) for cell in order]
    assert len(set(fits[:6])) == len(set(fits)) == 6


def test_a_tables_last_row_comes_first_and_finished_cells_are_left_out(tmp_path: Path) -> None:
    (run,) = prepare([registry.find_table("dlad/table2")], Selection(), tmp_path)
    rows = [cell.row for cell in unfinished([run])]
    every = [row.key for row in run.table.rows if row.key in rows]
    assert list(dict.fromkeys(rows)) == every[::-1]
    assert len(every) > 3
    done = run.cells[0]
    run.records[done.key] = cast(Record, None)  # what it is makes no difference
    assert done not in unfinished([run])
    assert len(unfinished([run])) == len(run.cells) - 1
