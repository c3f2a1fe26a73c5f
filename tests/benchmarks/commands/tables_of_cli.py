"""Commands with a folder of their own, and the tables that they write there."""

import csv
import os
import subprocess
from pathlib import Path

from tests.forking import run_forked

BRIEF = ("--set", "local.epochs=4", "--set", "server.epochs=3", "--set", "dlad.classifier_epochs=1")
"""A third of the smoke profile's epochs, where no number is compared with one of another run."""
COLUMN = (*BRIEF, "--only", "dataset=mnist", "--only", "distribution=niid1")


def options(folder: Path, *arguments: str) -> list[str]:
    """The arguments, with a results folder inside `folder` for commands that write one."""
    writes = arguments[0] in ("reproduce", "partition")
    return [*arguments, *(["--results", str(folder / "results")] if writes else [])]


def environment_of(folder: Path, **environment: str) -> dict[str, str]:
    """The environment with a cache and a data home inside `folder`."""
    return {
        **os.environ,
        "FEDTABLES_CACHE": str(folder / "cache"),
        "FEDTABLES_DATA": str(folder / "data"),
        "NO_COLOR": "1",
        "COLUMNS": "200",
        **environment,
    }


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command with its own cache, data home and results folder inside `folder`."""
    env = environment_of(folder, **environment)
    return run_forked("fedtables", *options(folder, *arguments), timeout=900, env=env)


def table_csv(folder: Path, name: str = "dlad/table2") -> Path:
    """The table's file, whatever its settings; not that of another way of running."""
    whole = folder / "results" / "smoke" / f"{name}.csv"
    files = (p for p in whole.parent.glob(f"{whole.stem}*.csv") if "claims" not in p.name)
    return min(files, key=lambda path: len(path.name), default=whole)


def lines(folder: Path, name: str = "dlad/table2") -> list[dict[str, str]]:
    with table_csv(folder, name).open(newline="") as stream:
        return list(csv.DictReader(stream))
