"""What a user waits for before any work: `--help`, `list`, the imports, and a table whose cells are
all finished.

Each beside what cannot be avoided: the start of Python, the import of torch, the run that finished
the cells.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys

from benchmarks.speed.pairs import compare
from results.sourcecode import ROOT

COLUMN = (
    "reproduce",
    "dlad/table2",
    "--only",
    "dataset=mnist",
    "--only",
    "distribution=niid1",
    "--jobs",
    "1",
)


def run(*arguments: str, **environment: str) -> str:
    """`python ARGUMENTS` in the checkout; what it prints."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_commands(benchmark):
    ways = {
        "python -c pass": ("-c", "pass"),
        **{name: ("-m", "benchmarks", name) for name in ("--help", "list")},
    }
    compare(benchmark, {name: functools.partial(run, *words) for name, words in ways.items()})


def test_imports(benchmark):
    modules = ("torch", "benchmarks.commands.cli", "benchmarks.running.execute")
    compare(
        benchmark,
        {
            f"import {module}": functools.partial(run, "-c", f"import {module}")
            for module in modules
        },
    )


def test_a_finished_table(benchmark, tmp_path):
    command = ("-m", "benchmarks", *COLUMN, "--results", str(tmp_path / "results"))
    environment = {
        "FEDTABLES_CACHE": str(tmp_path / "cache"),
        "FEDTABLES_DATA": str(tmp_path / "data"),
    }

    def finished() -> None:
        assert "4 finished before, 0 to run" in run(*command, **environment)

    compare(
        benchmark,
        {
            "all cells to run": lambda: run(*command, "--fresh", **environment),
            "all cells finished": finished,
        },
    )
