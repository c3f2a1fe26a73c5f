"""Comparisons: several ways of doing the same work, timed in turn, and the ratio of each to the
first.

On a shared machine the load drifts by more than the difference of interest. So every round runs
each way once, and a ratio is formed within its round: what slows one side slows the other. Rounds
start with another way each, so that none always comes after the same one.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ROUNDS = int(os.environ.get("FEDTABLES_SPEED_ROUNDS", "5"))
"""Rounds that are timed, after one that is not."""


@dataclass(frozen=True)
class Spread:
    """Median and extremes over rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))

    def text(self, digits: int) -> str:
        return f"{self.median:.{digits}f} ({self.low:.{digits}f} to {self.high:.{digits}f})"


@dataclass(frozen=True)
class Timed:
    """What a function returns that has measured itself, because not all that it does is to
    count.
    """

    seconds: float


@dataclass
class Comparison:
    """Named functions that do the same work; the first is what the others are compared with."""

    title: str
    ways: dict[str, Callable[[], object]]
    work: float = 0.0
    """Units of work that one call of any of them does, for example images; 0 if it has none."""
    unit: str = "images"
    seconds: dict[str, list[float]] = field(default_factory=dict)
    """Of every timed round, by name."""
    notes: dict[str, str] = field(default_factory=dict)
    """What else is to be said of a way, by name; for example the accuracy that it reaches."""

    def warm_up(self) -> None:
        """Each way once, not counted."""
        self.seconds = {name: [] for name in self.ways}
        for way in self.ways.values():
            way()

    def run_round(self) -> None:
        """Each way once."""
        names = list(self.ways)
        start = len(self.seconds[names[0]]) % len(names)
        for name in names[start:] + names[:start]:
            started = time.perf_counter()
            result = self.ways[name]()
            passed = time.perf_counter() - started
            self.seconds[name].append(result.seconds if isinstance(result, Timed) else passed)

    def run(self, rounds: int = ROUNDS) -> Comparison:
        """The warm-up and all rounds, for scripts; tests use `compare`."""
        self.warm_up()
        for _ in range(rounds):
            self.run_round()
        return self

    def spread(self, name: str) -> Spread:
        """Seconds of a way."""
        return Spread.of(self.seconds[name])

    def ratio(self, name: str) -> Spread:
        """Seconds of a way over those of the first, round by round: below 1 it is faster."""
        first = self.seconds[next(iter(self.ways))]
        return Spread.of(
            [taken / base for taken, base in zip(self.seconds[name], first, strict=True)]
        )

    def to_json(self) -> dict[str, Any]:
        """Every time, the ratios and the notes, for `--benchmark-json`."""
        by_way: dict[str, Any] = {}
        for name in self.ways:
            ratio = self.ratio(name)
            by_way[name] = {
                "seconds": self.seconds[name],
                "ratio": [ratio.median, ratio.low, ratio.high],
            }
            if self.work:
                by_way[name][f"{self.unit}_per_second"] = self.work / self.spread(name).median
            if name in self.notes:
                by_way[name]["note"] = self.notes[name]
        return by_way

    def lines(self) -> list[str]:
        """A table for people."""
        rounds = len(next(iter(self.seconds.values())))
        rows = [["", "seconds", "ratio to the first", f"{self.unit}/s" if self.work else "", ""]]
        for name in self.ways:
            rate = f"{self.work / self.spread(name).median:,.0f}" if self.work else ""
            rows.append(
                [
                    name,
                    self.spread(name).text(4),
                    self.ratio(name).text(3),
                    rate,
                    self.notes.get(name, ""),
                ]
            )
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        table = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        return [
            f"{self.title}: median (least to most) of {rounds} interleaved rounds",
            *(f"  {line}" for line in table),
        ]


FINISHED: list[Comparison] = []
"""Comparisons of this session; `conftest.py` prints them at its end."""


def compare(
    benchmark: Any,
    ways: Mapping[str, Callable[[], object]],
    *,
    work: float = 0.0,
    unit: str = "images",
    rounds: int = ROUNDS,
) -> Comparison:
    """Compare within a test that has pytest-benchmark's fixture, whose own row is then the time of
    a whole round.

    The ratios are printed at the end of the session, and are in `extra_info` of `--benchmark-json`.
    Notes that are only known afterwards go through `annotate`.
    """
    comparison = Comparison(benchmark.name, dict(ways), work, unit)
    comparison.warm_up()
    benchmark.pedantic(comparison.run_round, rounds=rounds)
    benchmark.extra_info["comparison"] = comparison.to_json()
    FINISHED.append(comparison)
    return comparison


def annotate(benchmark: Any, comparison: Comparison, notes: Mapping[str, str]) -> None:
    """Add notes to a comparison that is finished."""
    comparison.notes |= notes
    benchmark.extra_info["comparison"] = comparison.to_json()
