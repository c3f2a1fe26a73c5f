"""What the cache is said to hold, and what `--prune` leaves of it."""

import os
import time
from dataclasses import replace

import pytest

from fedtables.results.cached import entries, in_use
from fedtables.results.frame import read_records
from fedtables.results.store import CellCache
from tests.benchmarks.commands.tables_of_cli import COLUMN, lines, run

ASKED = ("reproduce", "dlad/table2", *COLUMN, "--only", "row=client-resnet")


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A folder with a cell that is finished, and its line."""
    folder = tmp_path_factory.mktemp("begun")
    assert run(folder, *ASKED).returncode == 0
    return folder, lines(folder)


def table_of(told):
    """The columns behind the first of each line of the table, by the first."""
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in told.splitlines()]
    return {line[0]: line[1:] for line in cells if len(line) > 1}


def test_kinds_are_counted_and_nothing_is_stale_after_a_run(begun):
    folder, _ = begun
    (folder / "data" / "weights").mkdir(parents=True)
    (folder / "data" / "weights" / "own.pth").write_bytes(bytes(2_000_000))
    (folder / "data" / "set.npz").write_bytes(bytes(1_500_000))
    told = table_of(run(folder, "cache").stdout)
    assert told["cells"][0] == "1"
    assert told["cells"][4:] == ["0", "0.000"]
    assert told["stages/local-model"][0] == "10"  # two networks of five clients
    assert told["weights"][:2] == ["1", "2.000"]
    assert told["data sets"][:2] == ["1", "1.500"]
    whole = sum(entry.size for entry in entries(folder / "cache"))
    assert float(told["total of the cache"][1]) == pytest.approx(whole / 1e6, abs=6e-4)


def test_a_pruned_cell_is_computed_again_with_the_same_digits(begun):
    folder, before = begun
    assert "removed 1 from" in run(folder, "cache", "--kind", "cells", "--prune").stdout
    again = run(folder, *ASKED, "--replace")
    assert "1 cells, 0 finished before, 1 to run" in again.stdout
    assert lines(folder) == before


def test_what_is_chosen_is_shown_first_and_only_what_is_old_enough(begun):
    folder, _ = begun
    cells = entries(folder / "cache", "cells")
    stages = entries(folder / "cache", "stages")
    for entry in stages:
        os.utime(entry.files[0], (time.time() - 3 * 86_400,) * 2)
    told = table_of(run(folder, "cache", "--older-than", "2").stdout)
    assert told["total of the cache"][0] == str(len(stages))
    assert "no such entry" in run(folder, "cache", "--older-than", "4").stdout
    assert "no such entry" in run(folder, "cache", "--kind", "plans").stdout
    assert len(entries(folder / "cache", "stages")) == len(stages)
    told = run(folder, "cache", "--older-than", "2", "--prune").stdout
    assert f"removed {len(stages)} from" in told
    assert not entries(folder / "cache", "stages")
    assert len(entries(folder / "cache", "cells")) == len(cells) == 1


def test_nothing_is_pruned_beside_a_running_command(begun, monkeypatch):
    folder, _ = begun
    monkeypatch.setenv("FEDTABLES_CACHE", str(folder / "cache"))
    with in_use():
        told = run(folder, "cache", "--kind", "cells", "--prune")
    assert (told.returncode, "another command is running" in told.stderr) == (2, True)
    assert entries(folder / "cache", "cells")


@pytest.mark.parametrize("command", ["pack a.zip", "unpack a.zip", "plan dlad/table1"])
def test_a_command_relies_on_the_cache_whose_lock_it_cannot_take(tmp_path, command):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "in-use.lock").write_text("no database")
    told = run(tmp_path, *command.split())
    assert (told.returncode, len(told.stderr.splitlines())) == (2, 1)
    assert "in-use.lock" in told.stderr


def test_a_finished_cell_of_other_code_is_stale(begun):
    folder, _ = begun
    [records] = (folder / "results").rglob("*.records.jsonl")
    [own] = read_records(records)
    CellCache(folder / "cache").put(replace(own, code="of another commit"))
    assert table_of(run(folder, "cache").stdout)["cells"][4] == "1"
    assert "removed 1 from" in run(folder, "cache", "--stale", "--prune").stdout
    assert not entries(folder / "cache", "cells")
    assert "removed" in run(folder, "cache", "--older-than", "0", "--prune").stdout
    assert not entries(folder / "cache", "stages", "plans", "pictures")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--prune",), "choose entries"),
        (("--kind", "cell"), "did you mean cells"),
        (("--older-than", "-1"), "number from 0"),
        (("--stale", "--plugin", "nosuch.py"), "no such file"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(tmp_path, arguments, message):
    told = run(tmp_path, "cache", *arguments)
    assert told.returncode == 2
    assert message in told.stderr
    assert len(told.stderr.splitlines()) == 1
