"""Makes a table of FedAvg and one of FedIOD under faults, and fails if one ends with another CSV
than an undisturbed run: killed commands and workers, and runs at once.

    python -m tests.tools.faults
"""

import argparse
import itertools
import os
import random
import runpy
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fedtables.federation.snapshots import Snapshots
from tests.forking import run_forked

ROUNDS = {"fedavg": "fedavg.rounds=24", "fediod": "fediod.epochs=12"}
NOTES, DELAY, ALONE = "FAULT_NOTES", "FAULT_DELAY", "FAULT_ALONE"
"""The file that is told what happens; seconds from the beginning of a fit's rounds to a SIGKILL;
set if it hits the worker alone."""


class Faults:
    """Trials of a row of FedIOD's first table in a folder. AssertionError is raised by what does
    not end as an undisturbed run does.
    """

    def __init__(self, folder: Path, row: str, seed: int):
        self.folder, self.row, self.random = folder, row, random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.numbers = itertools.count()
        place = self.place()
        done = self.run(place)
        assert done.returncode == 0, done.stderr
        self.whole, [fit] = csv(place), fits(place)
        self.seconds = float(fit.rsplit("computed in ")[1].split()[0])

    def place(self) -> Path:
        """A new folder for a cache and results."""
        place = self.folder / f"{self.row}-{next(self.numbers)}"
        place.mkdir(parents=True)
        return place

    def run(
        self, place: Path, *options: str, results: str = "results", **faults: str
    ) -> subprocess.CompletedProcess[str]:
        """The command with its cache in `place`, which no fault may make print a traceback."""
        command = [
            *("reproduce", "fediod/table1", "--jobs", "1", "--results", str(place / results)),
            *("--only", f"row={self.row}", "--only", "dataset=cifar10", "--only", "alpha=1"),
            *("--set", ROUNDS[self.row], *options),
        ]
        environment = {
            **os.environ,
            **{"FEDTABLES_CACHE": str(place / "cache"), "FEDTABLES_DATA": str(place / "data")},
            **{"COLUMNS": "200", "NO_COLOR": "1", NOTES: str(place / "notes")},
            **faults,
        }
        done = run_forked("tests.tools.faults", *command, timeout=300, env=environment)
        assert "Traceback" not in done.stdout + done.stderr, done.stderr
        return done

    def ends_undisturbed(self, place: Path, *options: str) -> None:
        """Give the command once more, without a fault."""
        done = self.run(place, *options)
        assert done.returncode == 0, done.stderr
        assert csv(place) == self.whole, f"another CSV in {place}"

    def kill(self, alone: bool) -> None:
        """Kill a run at a random moment of its rounds, or its worker alone."""
        place = self.place()
        delay = str(self.random.uniform(0, self.seconds))
        if self.run(place, **{DELAY: delay, **({ALONE: "1"} if alone else {})}).returncode == 0:
            return  # it was faster
        (place / "notes").unlink()
        self.ends_undisturbed(place)
        self.counts[f"kills of {'a worker' if alone else 'a command'}"] += 1
        if "rounds 0" not in (place / "notes").read_text().splitlines():
            self.counts["fits that went on from a snapshot"] += 1

    def at_once(self, number: int, together: bool) -> None:
        """Runs at the same time on one cache, into one folder of results or one each."""
        place = self.place()
        folders = ["results" if together else f"results-{n}" for n in range(number)]
        with ThreadPoolExecutor(number) as threads:
            runs = list(threads.map(lambda folder: self.run(place, results=folder), folders))
        for folder, done in zip(folders, runs, strict=True):
            assert done.returncode == 0, done.stderr
            assert csv(place, folder) == self.whole, f"another CSV in {place / folder}"
            self.counts["runs at once"] += 1


def csv(place: Path, results: str = "results") -> bytes:
    """The table's CSV; nothing where there is none."""
    paths = [p for p in (place / results).rglob("*.csv") if "claims" not in p.name]
    return paths[0].read_bytes() if len(paths) == 1 else b""


def fits(place: Path) -> list[str]:
    """Lines of the logs on fits that were computed."""
    lines = [line for path in place.rglob("*.log") for line in path.read_text().splitlines()]
    return [line for line in lines if ": fit " in line and "computed" in line]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20, help="of each table")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    for row in ROUNDS:
        with tempfile.TemporaryDirectory() as folder:
            faults = Faults(Path(folder), row, chosen.seed)
            for number, together in itertools.product((2, 4), (True, False)):
                faults.at_once(number, together)
            for number in range(chosen.kills):
                faults.kill(alone=number % 2 == 1)
        for name, count in sorted(faults.counts.items()):
            print(f"{row}: {count} {name}", flush=True)


# -- inside the command --


def note(line: str) -> None:
    """Add a line to the notes: one write, so that those of several processes do not mix."""
    with Path(os.environ[NOTES]).open("a") as stream:
        stream.write(line + "\n")


def run_disturbed() -> None:
    """`fedtables ARGUMENTS`, with a snapshot after every round, and killed in time."""
    begin, resume = Snapshots.__init__, Snapshots.resume

    def init(self, base, newer_than=0.0, every=0.0):
        begin(self, base, newer_than, 0.0)

    def resuming(self, parts):
        if DELAY in os.environ:
            threading.Thread(target=die, daemon=True).start()
        state = resume(self, parts)
        note(f"rounds {state[0]}")
        return state

    Snapshots.__init__, Snapshots.resume = init, resuming
    runpy.run_module("fedtables", run_name="__main__", alter_sys=True)


def die() -> None:
    """Kill this worker, and the command before it unless it is to outlive it."""
    command = os.getppid()
    time.sleep(float(os.environ[DELAY]))
    if ALONE not in os.environ and os.getppid() == command:
        os.kill(command, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    run_disturbed() if NOTES in os.environ else main()
