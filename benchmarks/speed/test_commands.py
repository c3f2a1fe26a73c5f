"""What a user waits for: commands and imports before any work, a table whose cells are all
finished, and a whole command with two workers against one, each with a cold cache.

Each is beside what cannot be avoided: the start of Python, the import of torch, the run that
finished the cells. With two workers the command's own start and end, and the last cells, do not get
shorter; CPU seconds tell these from what two busy cores cost each other. FEDTABLES_SPEED_TABLES
names other tables and options of `reproduce` for that.
"""

import functools
import os
import resource
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

from fedtables.benchmarks.speed.pairs import compare
from fedtables.results.sourcecode import ROOT

TABLES = os.environ.get(
    "FEDTABLES_SPEED_TABLES",
    "dlad/table2 --only dataset=cifar10 --set local.epochs=18 --set server.epochs=18",
)
"""In the smoke profile 16 cells that share stages, a minute for one worker."""
COLUMN = "dlad/table2 --only dataset=mnist --only distribution=niid1 --jobs 1"


def run(*arguments: str, **environment: str) -> str:
    """`python ARGUMENTS` in the checkout; what it prints."""
    command, environ = [sys.executable, *arguments], {**os.environ, **environment}
    done = subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, check=True
    )
    return done.stdout


def reproduce(folder: Path, *arguments: str) -> str:
    """The command, with cache and results in a folder; what it prints."""
    words = ("-m", "benchmarks", "reproduce", *arguments, "--results", str(folder / "results"))
    return run(*words, FEDTABLES_CACHE=str(folder / "cache"))


def test_commands(benchmark):
    ways = {"python -c pass": ("-c", "pass")}
    ways |= {name: ("-m", "fedtables", name) for name in ("--help", "list")}
    ways |= {
        f"import {module}": ("-c", f"import {module}")
        for module in (
            "torch",
            "fedtables.benchmarks.commands.cli",
            "fedtables.benchmarks.running.execute",
        )
    }

    def way(*words: str) -> None:
        run(*words)

    compare(benchmark, {name: functools.partial(way, *words) for name, words in ways.items()})


def test_a_finished_table(benchmark, tmp_path):
    def fresh() -> None:
        reproduce(tmp_path, *COLUMN.split(), "--fresh")

    def finished() -> None:
        assert "4 finished before, 0 to run" in reproduce(tmp_path, *COLUMN.split())

    compare(benchmark, {"all cells to run": fresh, "all cells finished": finished})


def test_two_workers(benchmark, tmp_path):
    cpu: dict[int, list[float]] = {1: [], 2: []}
    folders: list[Path] = []

    def way(jobs: int) -> None:
        folders.append(tmp_path / str(len(folders)))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        reproduce(folders[-1], *shlex.split(TABLES), "--jobs", str(jobs))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu[jobs].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    comparison = compare(benchmark, {f"--jobs {n}": functools.partial(way, n) for n in cpu})
    first, *others = map(_tables, folders)
    assert first
    assert all(other == first for other in others)  # other numbers sooner would be no gain
    for jobs, seconds in cpu.items():
        comparison.notes[f"--jobs {jobs}"] = f"{statistics.median(seconds):.1f} CPU seconds"


def _tables(folder: Path) -> dict[str, bytes]:
    """The CSVs of a run, by their place."""
    results = folder / "results"
    return {str(path.relative_to(results)): path.read_bytes() for path in results.rglob("*.csv")}
