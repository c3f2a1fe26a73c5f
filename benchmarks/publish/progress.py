"""Progress while a command runs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

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

from benchmarks.tables.cells import Cell
from results.record import OK, Record

if TYPE_CHECKING:
    from federation.caching.events import StageEvent


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
        self.doing: dict[int, str] = {}

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

    def started(self, worker: int, cell: Cell) -> None:
        if worker not in self.workers:
            self.workers[worker] = self.bar.add_task("", total=1.0)
        self.doing[worker] = f"{cell.row} {cell.column}"
        self.bar.reset(
            self.workers[worker], total=1.0, description=f"  {escape(self.doing[worker])}"
        )

    def progressed(self, worker: int, text: str, share: float) -> None:
        self.bar.update(
            self.workers[worker],
            completed=share,
            description=f"  {escape(self.doing[worker])}: {escape(text)}",
        )

    def staged(self, cell: Cell, event: StageEvent) -> None:
        self.stages[event.kind, event.computed] += 1
        if event.note:
            self.console.print(f"[yellow]{escape(f'{event.kind} {event.label}: {event.note}')}[/]")

    def done(self, worker: int, cell: Cell, record: Record) -> None:
        self.bar.advance(self.cells)
        if record.status == OK:
            last = {
                m.metric: f"{m.value:.4g}" if isinstance(m.value, float) else m.value
                for m in record.measurements
            }
            values = ", ".join(
                f"{name} {value}" if len(last) > 1 else value for name, value in last.items()
            )
            line = (
                f"[green]done[/]   {cell.row} {cell.column} seed {cell.seed}: {values} in"
                f" {record.seconds:.1f} s"
            )
            self.console.print(line, soft_wrap=True)
        else:
            self.console.print(
                f"[red]failed[/] {cell.row} {cell.column} seed {cell.seed}:"
                f" {escape(record.reason)}",
                soft_wrap=True,
            )
