"""Wrong command lines, drawn from every command and every option, and what becomes of them.

    python -m tests.tools.fuzz_commands --lines 600 --seed 0

prints how many were tried, accepted and refused in one line, and every line that ended otherwise:
with a traceback, with more or less than one line, with another exit code, not at all, or with a
file changed that it was not to write. The exit code is 1 if there is any such.
"""

import argparse
import contextlib
import hashlib
import itertools
import os
import random
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from fedtables.benchmarks.commands import cli
from fedtables.benchmarks.tables import registry
from fedtables.results.command_line import NUMBER, WHOLE
from tests.forking import CLOSED, ROOT, run_forked

REFERENCE = ROOT / "results" / "reference" / "smoke" / "dlad"
TIMEOUT = 150
"""Seconds after which a line counts as one that does not end."""
NUMBERS = (
    *("inf", "-inf", "nan", "-1", "-0.5", "0", "1_0", "1e400", "1e30", "1" + 30 * "0", "9" * 5000),
    *("0.5", "1e-400", "", " ", "0x10", "\u0661", "+5", "true", "[/red]", "\u00bd", "1,2", "--"),
)
TEXTS = (
    *("", " ", "[/red]", "[bold]x[/bold]", r"$\input{x}", ":x:", "nosuch", "=1+1", "a" * 3000),
    *("\udcff", "\u00e9\u2013\u4e2d", "a\nb", "../..", "-", "x=y=z", ",", "0", "\x1b[31m", "%s"),
)
SETTINGS = (
    *("inf", "-inf", "nan", "-1", "-0.5", "1_0", "1e400", "1e30", "1" + 30 * "0", "", "yes"),
    *("[/red]", r"$\input{x}", ":x:", "nosuch", "\udcff", "true", "2.5", "x" * 500),
)
AMOUNTS = (WHOLE, NUMBER, "MBIT/S", "MINUTES", "SECONDS")
PLACES = ("PATH", "PATH...", "FILE", "JSON", "RESULTS")
"""What the help calls a number, and a path."""
UNKNOWN = ("nosuch", "[/red]", ":x:", "", "dlad/", "/", "dlad/tabel2", "\udcff", "dlad/table2/x")
HOMES = ("FEDTABLES_CACHE", "FEDTABLES_DATA")
ENVIRONMENTS = ("", "~nosuchuser", "/dev/null", "/proc/nosuch", "/dev/full", "\udcff", "[/red]")


@dataclass(frozen=True)
class Line:
    """One command line."""

    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    output: str | None = None
    """Where its standard output goes (`tests.forking.run_forked`)."""

    def __str__(self) -> str:
        words = [f"{name}={value!r}" for name, value in self.environment]
        words += ["fedtables", *map(shlex.quote, self.arguments)]
        ends = {None: [], CLOSED: [">&-"]}.get(self.output, [f"> {self.output}"])
        return " ".join(word if len(word) < 90 else f"{word[:80]}..." for word in words + ends)


@dataclass(frozen=True)
class World:
    """Where lines run: folders of their own, and an address that never answers."""

    folder: Path
    silent: str

    @property
    def filled(self) -> Path:
        """Results that no line may change."""
        return self.folder / "filled"

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths that cannot be written, and a few that can."""
        table = self.filled / "smoke" / "dlad" / "table2.csv"
        own = ("[/red].png", "$\\input.csv", ":x:.md", "=1.html", "\u00e9.png", "new/a.csv")
        return (
            *("", "/dev/null", "/dev/full", "/proc/nosuch/x", "~nosuchuser/x", "/dev/zero"),
            *(str(self.filled), str(table), f"{table}/x", str(table.with_suffix(".md"))),
            *(str(self.folder / "fifo"), str(self.folder / ("n" * 300))),
            *(str(self.folder / "written" / name) for name in own),
        )

    def base(self, command: str) -> list[str]:
        """Arguments with which a command does what it is for, in little time."""
        results = ["--results", str(self.folder / "results")]
        asked = ("dataset=mnist", "distribution=niid1", "row=global-avg")
        row = [word for pair in asked for word in ("--only", pair)]
        written = self.folder / "written"
        return {
            "list": [],
            "show": ["dlad/table2"],
            "plan": ["dlad/table2", *row],
            "reproduce": ["dlad/table2", *row, *results, "--minutes", "0.0001", "--jobs", "1"],
            "sweep": ["dlad/table1", *results],
            "check": ["nosuch"],
            "data": [],
            "partition": ["--dataset", "digits", *results],
            "attack": [
                *("--dataset", "digits", "--images", "1", "--iterations", "1", "--restarts", "1"),
                *("--jobs", "1", *results),
            ],
            "pack": [str(written / "pack.zip")],
            "unpack": [str(written / "nosuch.zip")],
            "cards": ["--results", str(self.filled), "--output", str(written / "methods.md")],
            "build": [str(self.filled), "--output", str(written / "report")],
            "draw": [str(self.filled), "--output", str(written / "drawn")],
            "gallery": [str(self.filled), "--output", str(written / "gallery.md")],
            "compare": [str(self.filled), str(self.filled)],
            "verify": [str(self.filled), "--within", "0"],
        }.get(command, [])


@contextlib.contextmanager
def world() -> Iterator[World]:
    """A world in a folder of its own, which is removed."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name, socket.socket() as listener:
        folder = Path(name)
        shutil.copytree(REFERENCE, folder / "filled" / "smoke" / "dlad")
        (folder / "written").mkdir()
        os.mkfifo(folder / "fifo")
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield World(folder, f"127.0.0.1:{listener.getsockname()[1]}")


def commands() -> dict[tuple[str, ...], list[Any]]:
    """The parameters of every command, as the library that reads them has them."""
    known = {(name,): one for name, one in typer.main.get_command(cli.app).commands.items()}
    reports = known.pop(("reports",)).commands
    known |= {("reports", name): one for name, one in reports.items()}
    return {
        words: [one for one in command.params if "--help" not in one.opts]
        for words, command in known.items()
    }


def settings() -> list[tuple[str, str]]:
    """A table of every paper with every setting that `--set` takes there."""
    pairs = []
    for key, paper in registry.papers().items():
        names = {setting.name for setting in paper.every_setting}
        for method, entry in registry.methods().items():
            fields = getattr(entry.load(), "__dataclass_fields__", {})
            names |= {f"{method}.{name}" for name in fields}
        pairs += [(f"{key}/{paper.tables[0].key}", name) for name in sorted(names)]
    return pairs


def lines(where: World, seed: int) -> Iterator[Line]:
    """Wrong lines without end, different for every seed: what is rarely drawn comes first, then
    commands in turn.
    """
    draw = random.Random(seed)
    yield from _surroundings(where, draw)
    known, every_setting = commands(), settings()
    for command in itertools.cycle(known):
        parameters = known[command]
        base = where.base(command[-1])
        what = draw.random()
        takes_settings = any("--set" in parameter.opts for parameter in parameters)
        if takes_settings and what < 0.5:
            table, name = draw.choice(every_setting)
            yield Line((*command, *_setting(base, table, name, draw.choice(SETTINGS))))
        elif what < 0.06:
            yield Line((*command, *base, draw.choice(("--nosuch", "-x", "--", "extra"))))
        elif what < 0.1:
            yield Line((*command, *base[:-1]))
        else:
            chosen = draw.sample(parameters, min(len(parameters), draw.choice((1, 1, 1, 2))))
            arguments = base
            for parameter in chosen:
                arguments = _mutated(arguments, parameter, where, draw)
            yield Line((*command, *arguments))


def _setting(base: Sequence[str], table: str, name: str, value: str) -> list[str]:
    """The base with another table, all of its rows, and one setting."""
    rest = list(base[1:])
    while "--only" in rest:
        place = rest.index("--only")
        del rest[place : place + 2]
    return [table, *rest, "--set", f"{name}={value}"]


def _mutated(
    arguments: Sequence[str], parameter: Any, where: World, draw: random.Random
) -> list[str]:
    """The arguments with a wrong value of one parameter."""
    is_path = parameter.metavar in PLACES
    if parameter.param_type_name == "argument":
        return [draw.choice(where.paths if is_path else UNKNOWN), *arguments[1:]]
    name = parameter.opts[0]
    if parameter.is_flag:
        return [*arguments, name]
    texts = NUMBERS if parameter.metavar in AMOUNTS else TEXTS
    value = draw.choice(where.paths if is_path else texts)
    if name == "--ray":
        value = draw.choice((where.silent, "nosuch:1", "127.0.0.1:99999", "x", "[/red]", "ray://x"))
    if name in arguments:
        place = arguments.index(name) + 1
        return [*arguments[:place], value, *arguments[place + 1 :]]
    return [*arguments, *([f"{name}={value}"] if draw.random() < 0.5 else [name, value])]


def _surroundings(where: World, draw: random.Random) -> list[Line]:
    """Every command with an output or an environment that it cannot use, shuffled."""
    found = []
    for command in commands():
        arguments = (*command, *where.base(command[-1]))
        found += [Line(arguments, output=output) for output in (CLOSED, "/dev/full")]
        variables = [(name, value) for name in HOMES for value in ENVIRONMENTS]
        found += [Line(arguments, (pair,)) for pair in draw.sample(variables, 3)]
    draw.shuffle(found)
    return found


ACCEPTED, REFUSED = "accepted", "refused in one line"
TRACEBACK, HANGS, OTHER = "tracebacks", "not ended", "ended otherwise"


def judge(line: Line, where: World) -> tuple[str, str]:
    """What becomes of a line: one of the words above, and what was seen of it."""
    home = str(where.folder)
    env = {
        **os.environ,
        **{"HOME": home, "NO_COLOR": "1", "COLUMNS": "200", "OMP_NUM_THREADS": "1"},
        **{"FEDTABLES_CACHE": f"{home}/cache", "FEDTABLES_DATA": f"{home}/data"},
        **dict(line.environment),
    }
    try:
        done = run_forked(
            "fedtables", *line.arguments, timeout=TIMEOUT, env=env, output=line.output
        )
    except subprocess.TimeoutExpired:
        return HANGS, f"after {TIMEOUT} s"
    seen = f"{done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-3000:]}"
    if "Traceback (most" in done.stdout + done.stderr or "Exception ignored" in done.stderr:
        return TRACEBACK, seen
    if done.returncode in (0, 1, 75):
        return ACCEPTED, seen
    told = [text for text in done.stderr.splitlines() if text.strip()]
    if done.returncode == 2 and len(told) == 1 and told[0].startswith("error: "):
        return (OTHER if done.stdout.strip() else REFUSED), seen
    return OTHER, seen


def contents(where: World) -> dict[str, str]:
    """Digests of the files that no line may change."""
    files = (path for path in where.filled.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--lines", type=int, default=600)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--jobs", type=int, default=2)
    asked = options.parse_args()
    counts: Counter[str] = Counter()
    with world() as where, ThreadPoolExecutor(asked.jobs) as pool:
        some = list(itertools.islice(lines(where, asked.seed), asked.lines))
        before = contents(where)
        outcomes = pool.map(lambda line: judge(line, where), some)
        for line, (word, seen) in zip(some, outcomes, strict=True):
            counts[word] += 1
            if word not in (ACCEPTED, REFUSED):
                print(f"{word}: {line}\n{seen}\n")
        changed = before.items() - contents(where).items()
    for name, _ in changed:
        print(f"{name} has changed")
    print(f"{len(some)} lines tried with seed {asked.seed}:")
    for word in (REFUSED, ACCEPTED, TRACEBACK, HANGS, OTHER):
        print(f"  {counts[word]} {word}")
    sys.exit(1 if changed or counts.keys() - {ACCEPTED, REFUSED} else 0)


if __name__ == "__main__":
    main()
