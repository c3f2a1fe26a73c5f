"""Which deliberate faults the regression report finds: `python -m tests.mutations [NAME ...]`.

Each fault of `mutations.toml` is put into a copy of the checkout, the cells of its method in the
regression reference are regenerated there, and `reports compare` judges them against those of the
checkout by its statistical rule alone: not to the last digit, and without time and memory. All
share one cache (`$FEDTABLES_CACHE`), so that only what a fault changes is computed.
"""

from __future__ import annotations

import argparse
import configparser
import importlib
import multiprocessing
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.pool import AsyncResult
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = ("docs/", "results/", "tests/")
NEEDED = ("results/published/",)
"""Of the folders that are left out; and the modules of `results`."""
IMPORTED = (
    "torch",
    "torchvision",
    "timm",
    "opacus",
    "monai.networks.nets",
    "pandas",
    "scipy.stats",
)
"""What takes long to import, once for all; no module of this repository, since each copy has its
own."""


@dataclass(frozen=True)
class Fault:
    """A deliberate fault in a method."""

    name: str
    method: str
    """As the registry calls it."""
    file: str
    """Where, from the root of the repository."""
    text: str
    """What stands there once."""
    instead: str
    cells: str
    """The key of a command of `tox.ini`'s section `reference`, and options that narrow it."""

    def applied(self, source: str) -> str:
        """The source with the fault. Raises ValueError unless its text stands there once."""
        if (count := source.count(self.text)) != 1:
            raise ValueError(f"{self.name}: its text stands {count} times in {self.file}")
        return source.replace(self.text, self.instead)


def faults() -> list[Fault]:
    """All faults, in the order of the file."""
    listed = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    return [Fault(**fault) for fault in listed["fault"]]


def command_of(cells: str) -> str:
    """The arguments of `reproduce` for a fault's cells. Raises KeyError for an unknown command."""
    key, _, narrower = cells.partition(" ")
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ROOT / "tox.ini")
    return f"{settings['reference'][key]} {narrower}".strip()


def copy_checkout(target: Path) -> None:
    """The tracked files that running a table needs."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        module = name.startswith("results/") and name.count("/") == 1
        if module or name.startswith(NEEDED) or not name.startswith(LEFT_OUT):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)


def asked_for(command: str) -> Iterator[tuple[Any, Any, Any]]:
    """The papers and tables that the arguments of `reproduce` name, each with the selection."""
    from benchmarks.tables import registry
    from benchmarks.tables.selection import Selection, parse_methods, parse_overrides

    parser = argparse.ArgumentParser()
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--methods", default="")
    parser.add_argument("--seeds", required=True)
    asked = parser.parse_args(shlex.split(command))
    for name in asked.tables:
        paper, table = registry.find_table(name)
        add, drop = parse_methods(asked.methods)
        selection = Selection(
            seeds=tuple(map(int, asked.seeds.split(","))),
            only=dict(pair.split("=", 1) for pair in asked.only),  # a fault's row in place of all
            add=add,
            drop=drop,
            overrides=parse_overrides(asked.set, paper),
        )
        yield paper, table, selection


def regenerate(root: Path, command: str, results: Path) -> None:
    """Regenerate cells by the code under `root`, in a process that has imported none of it; without
    pictures. Cells that fail are in the table as such.
    """
    os.chdir(root)
    sys.path[0] = str(root)
    from benchmarks.running import runner
    from benchmarks.running.events import Context
    from benchmarks.running.execute import run_cell
    from results.files import cache_home

    for paper, table, selection in asked_for(command):
        (run,) = runner.prepare([(paper, table)], selection, results)
        for cell in run.cells:
            run.records[cell.key], _ = run_cell(cell, Context(str(cache_home() / "stages")))
        runner.write_table(run)


def attempt(fault: Fault, folder: Path) -> None:
    """Regenerate a fault's cells in a copy of the checkout."""
    with tempfile.TemporaryDirectory(prefix="fedtables-fault-") as copy:
        copy_checkout(Path(copy))
        path = Path(copy) / fault.file
        path.write_text(fault.applied(path.read_text()))
        regenerate(Path(copy), command_of(fault.cells), folder / fault.name)


def verdict(base: Path, new: Path) -> tuple[bool, str]:
    """Whether a metric is worse (one without direction: other) or its cell failed; and the cell
    that says so most clearly. Bytes and epsilon, which are compared exactly, are taken for equal.
    Raises ValueError if a cell of the base failed.
    """
    from reports.comparing.compare import EXACT, compare_results
    from reports.comparing.rule import CELL, Rule
    from reports.tables.resultset import ResultSet, read_pair

    old, now = read_pair(base, new)
    if failed := [key for key, line in old.cells.items() if line["status"] != "ok"]:
        raise ValueError(f"without any fault these cells fail: {failed}")
    spent = {key: {name: line[name] for name in EXACT} for key, line in old.cells.items()}
    alike = {key: {**line, **spent.get(key, {})} for key, line in now.cells.items()}
    rule = Rule(time_ratio=0, memory_ratio=0)
    compared = compare_results(old, ResultSet(alike, now.records), rule)
    cells = [difference for difference in compared if difference.kind == CELL]
    worse = [d for d in cells if d.verdict in ("worse", "failed", "changed")]
    shown = min(worse or cells, key=lambda d: (d.verdict != "failed", 1.0 if d.p is None else d.p))
    return bool(worse), f"{shown.base} -> {shown.new or shown.verdict}"


def judged(chosen: Sequence[Fault], folder: Path, jobs: int) -> Iterator[tuple[Fault, bool, str]]:
    """Of each fault in turn, whether it is found, and what its clearest cell says; `folder` gets
    the tables.
    """
    for name in IMPORTED:
        importlib.import_module(name)
    base = {fault.cells: folder / f"base-{n}" for n, fault in enumerate(chosen)}
    known: dict[str, AsyncResult[None]] = {}
    tried: list[AsyncResult[None]] = []
    fork = multiprocessing.get_context("fork")
    # One process for each: a copy's modules have the names of the checkout's.
    with fork.Pool(jobs, maxtasksperchild=1) as pool, fork.Pool(1) as judge:
        for fault in chosen:
            if fault.cells not in known:
                unchanged = (ROOT, command_of(fault.cells), base[fault.cells])
                known[fault.cells] = pool.apply_async(regenerate, unchanged)
            tried.append(pool.apply_async(attempt, (fault, folder)))
        for fault, task in zip(chosen, tried, strict=True):
            known[fault.cells].get()
            task.get()
            yield fault, *judge.apply(verdict, (base[fault.cells], folder / fault.name))


def main() -> None:
    """Print a table of all faults, or of those named, and the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="faults; all if none is named")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    asked = parser.parse_args()
    known = {fault.name: fault for fault in faults()}
    if unknown := sorted(set(asked.names) - set(known)):
        parser.error(f"no such fault: {', '.join(unknown)}; there are {', '.join(known)}")
    chosen = [known[name] for name in asked.names] or list(known.values())
    count = 0
    print("| fault | method | cells | without and with it | found |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for fault, found, shown in judged(chosen, Path(folder), asked.jobs):
            count += found
            fields = (fault.name, fault.method, fault.cells, shown, "yes" if found else "no")
            print("| " + " | ".join(fields) + " |", flush=True)
    print(f"\nfound {count} of {len(chosen)}")


if __name__ == "__main__":
    main()
