"""`reproduce --decide`: seeds go where a claim is open, until all are closed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from rich.console import Console

from fedtables.benchmarks.reporting.verdicts import is_read, undecided
from fedtables.benchmarks.running.table_run import TableRun
from fedtables.benchmarks.tables.cells import Cell
from fedtables.benchmarks.tables.expansion import expand
from fedtables.reports.tables.claims import Undecided
from fedtables.reports.tables.margins import LOOKS
from fedtables.reports.tables.predicates import Value
from fedtables.results.record import OK


@dataclass(frozen=True)
class Step:
    """What the next look at a comparison that is open needs."""

    cells: tuple[tuple[TableRun, Cell], ...]
    """Of further seeds; none where it has the most that are allowed, or reads other tables only."""
    seconds: float
    """That one seed takes, by the records of the cells' places."""
    further: float
    """Seeds that would close it, by its spread; infinite where none allowed would."""

    @property
    def cost(self) -> float:
        """Seconds until it is closed."""
        return self.seconds * self.further


def decide(
    console: Console, runs: Sequence[TableRun], most: int, compute: Callable[[], None]
) -> None:
    """Add cells of further seeds to `runs`, and `compute` what is not finished of them, until every
    comparison of their claims is closed or has `most` seeds: one comparison after another, the
    cheapest to close first, for its cells may close others too.

    Raises OutOfTimeError as `compute` does.
    """
    seeds = Seeds(runs, most)
    seeds.take_over()
    while True:
        steps = seeds.steps()
        console.print(told(steps, most), soft_wrap=True)
        lacking = [step for step in steps if step.cells]
        if not lacking:
            return
        seeds.add(min(lacking, key=lambda step: step.cost).cells)
        compute()


def told(steps: Sequence[Step], most: int) -> str:
    """What is open, and what it would take: less, where comparisons share cells."""
    if not steps:
        return "every comparison is closed"
    near = [step for step in steps if step.cells and math.isfinite(step.further)]
    hours = sum(step.cost for step in near) / 3600
    parts = ["1 comparison is open" if len(steps) == 1 else f"{len(steps)} comparisons are open"]
    if near:
        parts.append(f"{len(near)} may close in up to {hours:.2g} core-hours")
    if far := sum(math.isinf(step.further) for step in steps):
        parts.append(f"{far} would take more than {most} seeds")
    if beside := sum(math.isfinite(step.further) and not step.cells for step in steps):
        parts.append(f"{beside} would take seeds of tables that do not run here")
    return "; ".join(parts)


class Seeds:
    """Cells of further seeds for comparisons that are open."""

    def __init__(self, runs: Sequence[TableRun], most: int):
        self._runs = {run.table.key: run for run in runs}
        self._most = most
        self._cells: dict[tuple[str, int], list[Cell]] = {}
        self._keys = {cell.key for run in runs for cell in run.cells}
        self._first = min(min(run.selection.seeds) for run in runs)

    def take_over(self) -> None:
        """Add the cells of further seeds that an earlier command has left in the tables' files."""
        for run in self._runs.values():
            finished = {r.cell: r for r in run.all_records() if r.status == OK}
            seeds = {record.seed for record in finished.values()}
            for seed in sorted(seeds & {*range(self._first, self._first + self._most)}):
                for cell in self._of_seed(run, seed):
                    if cell.key in finished and cell.key not in self._keys:
                        self.add([(run, cell)])
                        run.records[cell.key] = finished[cell.key]

    def add(self, cells: Iterable[tuple[TableRun, Cell]]) -> None:
        """Add cells, each to its table."""
        for run, cell in cells:
            self._keys.add(cell.key)
            run.cells.append(cell)
            seeds = {*run.selection.seeds, cell.seed}
            run.selection = replace(run.selection, seeds=tuple(sorted(seeds)))

    def steps(self) -> list[Step]:
        """A step for each comparison that is open."""
        return [
            self._step(comparison)
            for run in self._runs.values()
            for comparison in undecided(run, run.all_records())
        ]

    def _step(self, comparison: Undecided) -> Step:
        """The first look that cells of the comparison lack seeds for, with these cells."""
        for look in (look for look in LOOKS if look <= self._most):
            pairs = [
                (run, cell)
                for table, value in comparison.reads
                if (run := self._runs.get(table)) is not None
                for seed in range(self._first, self._first + look)
                for cell in self._read(run, value, seed)
            ]
            lacking = tuple(
                (run, cell)
                for run, cell in {c.key: (r, c) for r, c in pairs}.values()
                if cell.key not in self._keys
            )
            if lacking:
                seeds = len({cell.seed for _, cell in lacking})
                seconds = sum(_seconds(run, cell) for run, cell in lacking) / seeds
                return Step(lacking, seconds, comparison.further)
        here = any(table in self._runs for table, _ in comparison.reads)
        return Step((), 0.0, math.inf if here else comparison.further)

    def _read(self, run: TableRun, value: Value, seed: int) -> list[Cell]:
        """The cells of a seed whose numbers a value is, or is computed of."""
        cells = self._of_seed(run, seed)
        return [c for c in cells if is_read(run.table, value, c.row, c.column)]

    def _of_seed(self, run: TableRun, seed: int) -> list[Cell]:
        """The cells of a table that the command would compute of a seed."""
        place = (run.name, seed)
        if place not in self._cells:
            selection = replace(run.selection, seeds=(seed,))
            self._cells[place] = expand(run.paper, run.table, selection, skip_unusable=True)
        return self._cells[place]


def _seconds(run: TableRun, cell: Cell) -> float:
    """Of the cell's place, by its records."""
    known = [
        r.seconds for r in run.records.values() if (r.row, r.column) == (cell.row, cell.column)
    ]
    return fmean(known) if known else 0.0
