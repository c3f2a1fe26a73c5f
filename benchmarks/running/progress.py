"""What a command shows while it runs: progress, and what cells show, in files that TensorBoard
reads.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column

from fedtables.benchmarks.tables.cells import Cell
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.results.record import OK, Record

if TYPE_CHECKING:
    from fedtables.benchmarks.running.events import Event
    from fedtables.federation.events import StageEvent


OPEN = 32
"""Most files that are written at a time; more are closed, and gone on with in another."""


def progress_bar(console: Console) -> Progress:
    """What is done, in how long, and how long it still takes; gone when it ends.

    The description alone gives way to a narrow terminal: it has what the other columns leave.
    """
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True)),
        BarColumn(bar_width=16),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        expand=True,
    )


def ended(console: Console, bar: Progress, task: TaskID) -> str:
    """Advance a task by one; how many are done, for whoever reads lines instead of a bar, else
    nothing.
    """
    bar.advance(task)
    done = bar.tasks[bar.task_ids.index(task)]
    return "" if console.is_terminal else f" ({done.completed:g} of {done.total:g})"


class Live:
    """Progress bars: one over cells with the time that is left, and a line per worker with what it
    is doing.
    """

    def __init__(self, console: Console, total: int):
        self.console = console
        self.stages: Counter[tuple[str, bool]] = Counter()
        self.bar = progress_bar(console)
        self.cells = self.bar.add_task("cells", total=total)
        self.workers: dict[int, TaskID] = {}

    def __enter__(self) -> Live:
        self.bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.bar.stop()
        for kind in dict.fromkeys(kind for kind, _ in self.stages):
            self.console.print(
                f"stages {kind}: {self.stages[kind, True]} computed, {self.stages[kind, False]}"
                " reused"
            )

    def show(self, cell: Cell, event: Event) -> None:
        """What happened to a cell."""
        if event.kind in ("started", "progress"):
            self._doing(cell, event)
        elif event.kind == "again":
            reason = event.text.partition("\n")[0]
            self.console.print(f"[yellow]again[/]  {_name(cell)}: {escape(reason)}", soft_wrap=True)
        elif event.stage is not None:
            self._staged(event.stage)
        elif event.record is not None:
            self._done(cell, event.record)

    def _doing(self, cell: Cell, event: Event) -> None:
        if event.worker not in self.workers:
            self.workers[event.worker] = self.bar.add_task("", total=1.0)
        task = self.workers[event.worker]
        if event.kind == "started":
            self.bar.reset(task)
        text = ": ".join(filter(None, [f"{cell.row} {cell.column}", event.text]))
        self.bar.update(task, completed=event.share, description=f"  {escape(text)}")

    def _staged(self, event: StageEvent) -> None:
        self.stages[event.kind, event.computed] += 1
        if event.note:
            self.console.print(f"[yellow]{escape(f'{event.kind} {event.label}: {event.note}')}[/]")

    def _done(self, cell: Cell, record: Record) -> None:
        count = ended(self.console, self.bar, self.cells)
        if record.status == OK:
            last = {
                m.metric: f"{m.value:.4g}" if isinstance(m.value, float) else m.value
                for m in record.measurements
            }
            values = ", ".join(
                f"{name} {value}" if len(last) > 1 else value for name, value in last.items()
            )
            line = f"[green]done[/]   {_name(cell)}: {values} in {record.seconds:.1f} s"
        else:
            line = f"[red]failed[/] {_name(cell)}: {escape(record.reason)}"
        self.console.print(line + count, soft_wrap=True)


def _name(cell: Cell) -> str:
    return f"{cell.row} {cell.column} seed {cell.seed}"


class TensorBoard(contextlib.AbstractContextManager):
    """Takes points, as `fedtables.reproduce(log=...)` gives them, into folders below `home`.

    Raises SpecError if TensorBoard is not installed.
    """

    def __init__(self, home: Path):
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise SpecError(
                "--log-to tensorboard needs TensorBoard, which is not installed: python -m pip"
                " install 'tensorboard>=2.21'"
            ) from None
        self.home = home
        self._make_writer = SummaryWriter
        self._writers: dict[str, Any] = {}

    def __call__(self, cell: str, series: str, step: int, value: float) -> None:
        if cell not in self._writers:
            if len(self._writers) == OPEN:
                self._writers.pop(next(iter(self._writers))).close()
            self._writers[cell] = self._make_writer(str(self.home / cell.replace("/", "-")))
        self._writers[cell].add_scalar(series, value, step)

    def __exit__(self, *error: object) -> None:
        for writer in self._writers.values():
            writer.close()
