"""A whole command with two workers against one, each with a cold cache: what a user waits for.

Beside the work this has what does not get shorter: the command's own start and end, the start of
every worker, and the last cells, when one worker has nothing left to do. CPU seconds tell these
from what two busy cores cost each other. FEDTABLES_SPEED_TABLES names other tables and options of
`reproduce`.
"""

from __future__ import annotations

import functools
import os
import resource
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.speed.pairs import annotate, compare
from results.sourcecode import ROOT

TABLES = os.environ.get(
    "FEDTABLES_SPEED_TABLES",
    "dlad/table2 --only dataset=cifar10 --set local.epochs=18 --set server.epochs=18",
)
"""In the smoke profile 16 cells that share stages, a minute for one worker."""
JOBS = (1, 2)


def _reproduce(jobs: int, folder: Path) -> float:
    """Run the command in a new folder; returns its CPU seconds, workers included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "reproduce",
        *shlex.split(TABLES),
        "--jobs",
        str(jobs),
    ]
    subprocess.run(
        [*command, "--results", str(folder / "results")],
        cwd=ROOT,
        env={**os.environ, "FEDTABLES_CACHE": str(folder / "cache")},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _tables(folder: Path) -> dict[str, bytes]:
    """The CSVs of a run, by their place."""
    results = folder / "results"
    return {str(path.relative_to(results)): path.read_bytes() for path in results.rglob("*.csv")}


def test_two_workers(benchmark, tmp_path):
    cpu: dict[str, list[float]] = {f"--jobs {jobs}": [] for jobs in JOBS}
    folders: list[Path] = []

    def way(jobs: int) -> None:
        folders.append(tmp_path / str(len(folders)))
        cpu[f"--jobs {jobs}"].append(_reproduce(jobs, folders[-1]))

    benchmark.extra_info["tables"] = TABLES
    comparison = compare(
        benchmark, {f"--jobs {jobs}": functools.partial(way, jobs) for jobs in JOBS}
    )
    first = _tables(folders[0])
    assert first
    assert all(
        _tables(folder) == first for folder in folders
    )  # other numbers sooner would be no gain
    annotate(
        benchmark,
        comparison,
        {name: f"{statistics.median(values):.1f} CPU seconds" for name, values in cpu.items()},
    )
