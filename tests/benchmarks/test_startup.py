"""A command that computes nothing leaves frameworks, workers and stages alone; else it would take
seconds to say so.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from fedtables.results.sourcecode import ROOT

FRAMEWORKS = {"torch", "torchvision", "timm", "matplotlib", "sklearn", "scipy", "opacus", "ray"}
"""What takes a good part of a second or more to import."""

WATCHED = """
import atexit, runpy, sys
atexit.register(lambda: print("imported:", *sys.modules, file=sys.stderr))
runpy.run_module("fedtables", run_name="__main__")
"""


def imported_by(*arguments: str) -> tuple[str, set[str]]:
    """What a command prints, and the modules that it imported."""
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, set(done.stderr.rpartition("imported:")[2].split())


@pytest.mark.parametrize("command", ["--help", "list"])
def test_a_command_that_only_tells_imports_no_framework(command):
    printed, imported = imported_by(command)
    assert "table" in printed
    assert "fedtables.benchmarks.tables.registry" in imported
    heavy = FRAMEWORKS | {"pandas"} | ({"numpy"} if command == "--help" else set())
    assert not imported & heavy


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("dlad/table1",), marks=pytest.mark.slow, id="a partition"),
        pytest.param(("fediod/table7", "--only", "row=gan"), id="generated images"),
    ],
)
def test_a_finished_table_starts_no_worker_computes_no_stage_and_imports_no_framework(
    command, arguments, tmp_path
):
    again = ("reproduce", *arguments, "--results", str(tmp_path / "results"))
    first = command(*again)
    assert first.returncode == 0, first.stderr
    before = _written(tmp_path)
    printed, imported = imported_by(*again)
    assert " 0 to run" in printed
    assert "fedtables.benchmarks.running.runner" in imported
    # Workers are started by the one, stages computed by the other.
    assert not imported & {
        "fedtables.benchmarks.running.pool",
        "fedtables.federation.cache",
        *FRAMEWORKS,
    }
    assert _written(tmp_path) == before


def _written(folder: Path) -> dict[Path, int]:
    """When each cell, stage and picture was written; a table's texts are written anew by every
    command, and digests of data by the first process that has none in its memory.
    """
    files = (
        path
        for path in folder.rglob("*")
        if path.suffix in (".json", ".safetensors", ".png", ".svg")
        and folder / "cache" / "data" not in path.parents
    )
    found = {
        path: path.stat().st_mtime_ns for path in files if not path.name.endswith(".layout.json")
    }
    assert {path.suffix for path in found} >= {".json", ".png"}
    return found
