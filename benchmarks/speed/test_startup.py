"""Speed of what a user waits for before any work: `--help`, `list`, the imports, and a table whose cells are all finished."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from results.sourcecode import ROOT

COLUMN = ("reproduce", "dlad/table2", "--only", "dataset=mnist", "--only", "distribution=niid1")


def run(*arguments: str, **environment: str) -> str:
    """`python ARGUMENTS` in the checkout; what it prints."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> tuple[list[str], dict[str, str]]:
    """A command whose four cells are finished, and the environment with their cache."""
    folder = tmp_path_factory.mktemp("finished")
    command = ["-m", "benchmarks", *COLUMN, "--results", str(folder / "results")]
    environment = {"FEDTABLES_CACHE": str(folder / "cache"), "FEDTABLES_DATA": str(folder / "data")}
    run(*command, **environment)
    return command, environment


@pytest.mark.parametrize("command", ["--help", "list"])
def test_a_command(benchmark, command):
    benchmark.pedantic(lambda: run("-m", "benchmarks", command), warmup_rounds=1, rounds=5)


@pytest.mark.parametrize("module", ["benchmarks.cli", "benchmarks.execute"])
def test_an_import(benchmark, module):
    benchmark.pedantic(lambda: run("-c", f"import {module}"), warmup_rounds=1, rounds=5)


def test_a_finished_table(benchmark, finished):
    command, environment = finished
    printed = benchmark.pedantic(lambda: run(*command, **environment), warmup_rounds=1, rounds=5)
    assert "4 finished before, 0 to run" in printed
