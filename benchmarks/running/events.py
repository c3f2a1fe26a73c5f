"""What a worker is given beside its cell, what it reports, and which cells are run again by it."""

import contextlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fedtables.benchmarks.tables.cells import Cell
from fedtables.federation.events import StageEvent
from fedtables.federation.watching import Point
from fedtables.results.record import FAILED, Record

OUT_OF_MEMORY = "out of memory"
"""How the reason begins of a cell for which its device had too little left."""
DEVICE_FAULT = "device fault"
"""How the reason begins of a cell in which CUDA failed. Its process can compute nothing more."""


@dataclass(frozen=True)
class Context:
    """What a worker needs beside the cell."""

    stages: str
    """Folder of the stage cache."""
    newer_than: float = 0.0
    """Stages older than this count as absent (`--fresh`)."""
    commit: str = ""
    dirty: bool = False
    """Whether tracked files differ from the commit."""
    watched: bool = False
    """Whether somebody wants the points that cells show."""


@dataclass(frozen=True)
class Event:
    """Something happened to cell number `cell`: one of started, progress, stage, point, again (for
    what is in `text` it will be run once more), done.
    """

    kind: str
    cell: int
    worker: int = 0
    text: str = ""
    share: float = 0.0
    """How much of the step in `text` is done, 0 to 1."""
    stage: StageEvent | None = None
    point: Point | None = None
    record: Record | None = None


def with_second_tries(
    run: Callable[[Sequence[int], int], Generator[Event]], cells: int, jobs: int
) -> Generator[Event]:
    """The events of `run(positions, jobs)` for cells 0 to `cells` - 1. Cells whose device had too
    little memory, or failed, are run once more after the others, one at a time in new processes.
    """
    alone: list[int] = []
    with contextlib.closing(run(range(cells), jobs)) as events:
        for event in events:
            reason = event.record.reason if event.record is not None else ""
            if reason.startswith((OUT_OF_MEMORY, DEVICE_FAULT)):
                alone.append(event.cell)
                why = f"{reason}; run again alone\n{event.text}"
                event = replace(event, kind="again", text=why, record=None)
            yield event
    if alone:
        yield from run(alone, 1)


def record_of(cell: Cell, **more: Any) -> Record:
    """A cell's record, with what is known before it runs, and `more` of what it left."""
    names = ("table", "row", "column", "seed", "profile", "protocol", "code")
    known: dict[str, Any] = {
        **{name: getattr(cell, name) for name in names},
        "seeds": {},
        "cell": cell.key,
        "plugins": tuple(Path(path).name for path in cell.plugins),
        "config": dict(cell.config),
        "data": asdict(cell.data),
        "public": asdict(cell.public) if cell.public is not None else {},
        "private": asdict(cell.private) if cell.private is not None else {},
        "others": tuple(asdict(other) for other in cell.others),
    }
    return Record(**{**known, **more})


def failed(cell: Cell, reason: str) -> Record:
    """The record of a cell of which no worker sent one."""
    return record_of(cell, status=FAILED, reason=reason)
