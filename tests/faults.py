"""Faults while a table is made: kills, several runs at once, full disks, a clock that was set back.
All end with the CSV of an undisturbed run, or say in one line what is wrong and do so when it is
not wrong any more.

`python -m tests.faults` does the whole and prints counts; `tests/test_faults.py` does a part.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests import faulty
from tests.forking import run_forked

ROUNDS = {"fedavg": "fedavg.rounds", "fediod": "fediod.epochs"}
DAY = 86_400


@dataclass
class Faults:
    """Trials of the row `row` of a table in `folder`, with `rounds` rounds, and what came of them.

    AssertionError is raised by what does not end as an undisturbed run does.
    """

    folder: Path
    row: str
    rounds: int
    random: random.Random
    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    """Of the undisturbed fit."""
    whole: bytes = b""
    """Its CSV."""
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def undisturbed(self) -> None:
        """Make the table that all others have to equal."""
        place = self.place()
        done = self.run(place)
        assert done.returncode == 0, done.stderr
        self.whole, [log] = csv(place), place.rglob("*.log")
        [fit] = [line for line in log.read_text().splitlines() if ": fit " in line]
        self.seconds = float(fit.rsplit("computed in ")[1].split()[0])

    def place(self) -> Path:
        """A new folder for a cache and results."""
        place = self.folder / f"{self.row}-{next(self._numbers)}"
        place.mkdir(parents=True)
        return place

    def run(
        self, place: Path, *options: str, results: str = "results", **faults: str
    ) -> subprocess.CompletedProcess[str]:
        """The command with its cache in `place`, which no fault may make print a traceback."""
        only = [f"row={self.row}", "dataset=cifar10", "alpha=1"]
        command = [
            *("reproduce", "fediod/table1", "--jobs", "1", "--results", str(place / results)),
            *(text for value in only for text in ("--only", value)),
            *("--set", f"{ROUNDS[self.row]}={self.rounds}", *options),
        ]
        environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith("FAULT_")},
            "FEDTABLES_CACHE": str(place / "cache"),
            "FEDTABLES_DATA": str(place / "data"),
            "COLUMNS": "200",
            "NO_COLOR": "1",
            faulty.NOTES: str(place / "notes"),
            **faults,
        }
        done = run_forked("tests.faulty", *command, timeout=300, env=environment)
        assert "Traceback" not in done.stdout + done.stderr, done.stderr
        return done

    def ends_undisturbed(self, place: Path, *options: str, results: str = "results") -> None:
        """Give the command once more, without a fault."""
        done = self.run(place, *options, results=results)
        assert done.returncode == 0, done.stderr
        assert csv(place, results) == self.whole, f"another CSV in {place}"
        self.counts["runs that ended with the CSV of the undisturbed one"] += 1

    def kills(self, number: int, chain: int = 4) -> None:
        """Kill `number` runs at random moments of their rounds, up to `chain` in a row of one fit:
        every second time the worker alone.
        """
        killed = 0
        while killed < number:
            place = self.place()
            for _ in range(min(chain, number - killed)):
                delay = self.random.uniform(0, self.seconds / min(chain, number))
                alone = {faulty.ALONE: "1"} if killed % 2 else {}
                done = self.run(place, **{faulty.DELAY: str(delay)}, **alone)
                if done.returncode == 0:
                    break  # it was faster
                # A lost worker is a failed cell of a command that goes on.
                assert done.returncode == (1 if alone else -9), done.stderr
                (place / "notes").unlink()
                killed += 1
                self.counts[f"kills of {'a worker' if alone else 'a command'}"] += 1
            self.ends_undisturbed(place)
            if any(line not in ("rounds 0", "killed") for line in notes(place)):
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
        [log] = {path.read_text() for path in place.rglob("*.log")} if together else [""]
        assert log.count(": fit ") in (0, number), "a run without its fit"

    def full_disk(self, what: str, size: int) -> None:
        """A disk of `size` bytes for the cache or the results (`what`), which later is emptied."""
        place = self.place()
        with disk(place / what, size) as limit:
            done = self.run(place, **limit)
            full = done.returncode != 0
            assert not full or says_why(done, place), done.stdout + done.stderr
            self.counts[f"full disks for the {what}" if full else "disks that were enough"] += 1
            if not limit:
                subprocess.run(["mount", "-o", "remount,size=1g", place / what], check=True)
            self.ends_undisturbed(place)

    def clock_set_back(self) -> None:
        """All of the cache is of tomorrow: it is used, and `--fresh` computes it again."""
        place = self.place()
        assert self.run(place).returncode == 0
        tomorrow = time.time() + DAY
        for path in (place / "cache").rglob("*"):
            os.utime(path, (tomorrow, tomorrow))
        self.ends_undisturbed(place)
        before = fits(place)
        self.ends_undisturbed(place, "--fresh")
        assert fits(place) == before + 1, "--fresh took a fit of tomorrow for a fresh one"
        self.counts["clocks set back"] += 1


def csv(place: Path, results: str = "results") -> bytes:
    """The table's CSV; nothing where there is none."""
    paths = [p for p in (place / results).rglob("*.csv") if "claims" not in p.name]
    return paths[0].read_bytes() if len(paths) == 1 else b""


def notes(place: Path) -> list[str]:
    path = place / "notes"
    return path.read_text().splitlines() if path.exists() else []


def fits(place: Path) -> int:
    """How many fits were computed in it."""
    logs = [path.read_text() for path in place.rglob("*.log")]
    return sum(
        line.count(": fit ") and "computed" in line for log in logs for line in log.split("\n")
    )


def says_why(done: subprocess.CompletedProcess[str], place: Path) -> bool:
    """Whether the command says, in one line, that a file of this place could not be written."""
    told = [*done.stderr.splitlines(), *done.stdout.splitlines()]
    return any("cannot write" in line and str(place) in line for line in told)


@contextlib.contextmanager
def disk(path: Path, size: int) -> Iterator[dict[str, str]]:
    """A file system of `size` bytes at `path`, where this process may mount one; elsewhere the
    variable by which no file gets larger.
    """
    path.mkdir(parents=True, exist_ok=True)
    options = f"size={size},mode=755"
    mounted = (
        os.geteuid() == 0
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", path], capture_output=True, check=False
        ).returncode
    )
    if not mounted:
        yield {faulty.LARGEST: str(size)}
        return
    try:
        yield {}
    finally:
        subprocess.run(["umount", "-l", path], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--kills", type=int, default=20, help="of each of FedAvg's and FedIOD's fits"
    )
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for row, rounds in (("fedavg", 24), ("fediod", 12)):
            faults = Faults(Path(folder), row, rounds, random.Random(chosen.seed))
            faults.undisturbed()
            print(f"{row}: {rounds} rounds in {faults.seconds:.1f} s undisturbed", flush=True)
            faults.at_once(2, together=True)
            faults.at_once(2, together=False)
            faults.at_once(4, together=True)
            faults.at_once(4, together=False)
            for what, sizes in (("cache", (2**14, 2**17, 2**18)), ("results", (2**12, 2**15))):
                for size in sizes:
                    faults.full_disk(what, size)
            faults.clock_set_back()
            faults.kills(chosen.kills)
            for name, count in sorted(faults.counts.items()):
                print(f"{row}: {count} {name}", flush=True)
            total += faults.counts
    print("both: " + ", ".join(f"{count} {name}" for name, count in sorted(total.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
