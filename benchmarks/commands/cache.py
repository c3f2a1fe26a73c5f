"""`cache`: what the cache holds, and what of it is removed."""

import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table as RichTable

from fedtables.benchmarks.commands.app import console
from fedtables.benchmarks.tables.readers import choice
from fedtables.benchmarks.tables.request import Request, takes
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.results import cached
from fedtables.results.cached import KINDS, STALE, UNTOLD, Entry
from fedtables.results.command_line import number
from fedtables.results.files import cache_home, data_home

DATA, WEIGHTS = "data sets", "weights"
"""Files of the data home, which are never removed."""
HEADINGS = ("kind", "number", "MB", "oldest", "newest", "stale", "MB stale")


@dataclass(frozen=True)
class Choice:
    """Chooses entries of the cache: those for which all of this holds."""

    kinds: tuple[str, ...] = ()
    """One of these; none for any."""
    older_than: float | None = None
    """Days since it was written; None for any age."""
    stale: bool = False

    def of(self, standings: Mapping[Entry, str]) -> list[Entry]:
        """The entries, by what the present code makes of them, that are meant."""
        latest = time.time() - (self.older_than or 0) * cached.DAY
        return [
            entry
            for entry, standing in standings.items()
            if (not self.kinds or entry.kind in self.kinds)
            and (self.older_than is None or entry.written <= latest)
            and (not self.stale or standing == STALE)
        ]


@takes("plugins")
def show_cache(
    request: Request,
    kind: Annotated[
        list[str] | None, typer.Option(metavar="KIND", help=f"repeatable: {', '.join(KINDS)}")
    ] = None,
    older_than: Annotated[
        float | None,
        typer.Option(parser=number(), metavar="DAYS", help="only entries at least this old"),
    ] = None,
    stale: Annotated[
        bool, typer.Option("--stale", help="only entries that the present code cannot use")
    ] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="remove the chosen entries; look without it first")
    ] = False,
) -> None:
    """Show the cache ($FEDTABLES_CACHE): its size, its age, and what is stale in it.

    --kind, --older-than and --stale choose entries. With --prune these are removed. Data sets and
    downloaded weights are never removed.
    """
    asked = Choice(tuple(choice("--kind", name, KINDS) for name in kind or ()), older_than, stale)
    if not prune:
        return _show(asked)
    if asked == Choice():
        raise SpecError("--prune: choose entries with --stale, --kind KIND or --older-than DAYS")
    with cached.unused():
        _prune(asked)


def _show(asked: Choice) -> None:
    home = cache_home()
    standings = _standings(home)
    chosen = {entry: standings[entry] for entry in asked.of(standings)}
    if not chosen and asked != Choice():
        console.print(f"{escape(str(home))} has no such entry", soft_wrap=True)
        return
    table = RichTable(title=escape(f"Cache: {home}"), title_justify="left")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == HEADINGS[0] else "right")
    for name in sorted({entry.shown_as for entry in chosen}):
        table.add_row(name, *_line({e: s for e, s in chosen.items() if e.shown_as == name}))
    for name, files in {} if asked != Choice() else _of_data_home().items():
        table.add_row(name, *_amount(files), "", "")
    if chosen:
        table.add_section()
        table.add_row("total of the cache", *_line(chosen))
    console.print(table)
    console.print("stale: the present code and packages cannot use it", soft_wrap=True)
    untold = sum(s == UNTOLD and e.kind in ("cells", "stages") for e, s in chosen.items())
    if untold:
        console.print(
            f"unknown for {untold} cells and stages; name their plug-ins with --plugin",
            soft_wrap=True,
        )


def _standings(home: Path) -> dict[Entry, str]:
    """What the present code makes of all that the cache holds."""
    from fedtables.benchmarks.running.standing import of_entry

    return {entry: of_entry(home, entry) for entry in cached.entries(home)}


def _line(entries: Mapping[Entry, str]) -> list[str]:
    """How many there are, how large and how old; and of how many, how large, nobody has a use."""
    stale = [entry.size for entry, standing in entries.items() if standing == STALE]
    amount = _amount([(entry.size, entry.written) for entry in entries])
    return [*amount, f"{len(stale):,}", _megabytes(stale)]


def _amount(files: Sequence[tuple[int, float]]) -> list[str]:
    """Number, megabytes, and the days of the oldest and the newest of several sizes and times."""
    times = sorted(written for _, written in files)
    days = [time.strftime("%Y-%m-%d", time.localtime(at)) for at in times[:1] + times[-1:]]
    return [f"{len(files):,}", _megabytes(size for size, _ in files), *(days or ["", ""])]


def _megabytes(sizes: Iterable[int]) -> str:
    return f"{sum(sizes) / 1e6:,.3f}"


def _of_data_home() -> dict[str, list[tuple[int, float]]]:
    """Sizes and times of the files that the user put into the data home, or had downloaded."""
    home = data_home()
    found: dict[str, list[tuple[int, float]]] = {DATA: [], WEIGHTS: []}
    for folder, _, names in os.walk(home):
        place = Path(folder)
        kind = WEIGHTS if place.is_relative_to(home / "weights") else DATA
        for name in names:
            path = place / name
            if path.is_file() and not re.fullmatch(KINDS["digests"], f"data/{name}"):
                found[kind].append((path.stat().st_size, path.stat().st_mtime))
    return found


def _prune(asked: Choice) -> None:
    """Remove what is meant, but for stages that others, which stay, rely on."""
    home = cache_home()
    chosen = asked.of(_standings(home))
    leaving = cached.unreferenced(home, chosen)
    for entry in leaving:
        cached.remove(entry)
    size = _megabytes(entry.size for entry in leaving)
    console.print(f"removed {len(leaving):,} from {escape(str(home))}: {size} MB", soft_wrap=True)
    if kept := len(chosen) - len(leaving):
        console.print(f"kept {kept:,} stages that other kept entries need", soft_wrap=True)
