"""Comparisons: several ways of doing the same work, timed in turn, and the ratio of each to the
first.

On a shared machine the load drifts by more than the difference of interest. So every round runs
each way once, and a ratio is formed within its round: what slows one side slows the other. Rounds
start with another way each, so that none always comes after the same one.
"""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

REPEATS = int(os.environ.get("FEDTABLES_SPEED_ROUNDS", "5"))
"""Rounds that are timed, after one that is not."""
SPREAD = ["median", "min", "max"]

Way = Callable[[], float | None]
"""Does the work; returns its seconds where not all that it does is to count."""


@dataclass
class Comparison:
    """Named functions that do the same work; the first is what the others are compared with."""

    title: str
    ways: dict[str, Way]
    images: int = 0
    """That one call of any of them learns from; 0 if it learns nothing."""
    seconds: dict[str, list[float]] = field(default_factory=dict)
    """Of every timed round, by name."""
    notes: dict[str, str] = field(default_factory=dict)
    """What else is to be said of a way, by name; for example the accuracy that it reaches."""

    def warm_up(self) -> None:
        """Each way once, not counted."""
        for name, way in self.ways.items():
            self.seconds[name] = []
            way()

    def run_round(self) -> None:
        """Each way once."""
        names = list(self.ways)
        start = len(self.seconds[names[0]]) % len(names)
        for name in names[start:] + names[:start]:
            started = time.perf_counter()
            own = self.ways[name]()
            passed = time.perf_counter() - started
            self.seconds[name].append(passed if own is None else own)

    def run(self, rounds: int = REPEATS) -> None:
        """The warm-up and all rounds, for scripts; tests use `compare`."""
        self.warm_up()
        for _ in range(rounds):
            self.run_round()

    def text(self) -> str:
        """A table for people."""
        seconds = pd.DataFrame(self.seconds)
        ratios = seconds.div(seconds.iloc[:, 0], axis=0)
        spread = [seconds.agg(SPREAD).T, ratios.agg(SPREAD).T.add_prefix("ratio ")]
        table = pd.concat(spread, axis=1)
        if self.images:
            table["images/s"] = self.images / seconds.median()
        table["note"] = pd.Series(self.notes, dtype=str)
        shown = table.to_string(float_format="{:.4g}".format, na_rep="", max_colwidth=None)
        return f"{self.title}: seconds of {len(seconds)} interleaved rounds\n{shown}\n"


FINISHED: list[Comparison] = []
"""Comparisons of this session; `conftest.py` prints them at its end."""


def compare(benchmark: Any, ways: Mapping[str, Way], images: int = 0) -> Comparison:
    """Compare within a test that has pytest-benchmark's fixture, whose own row is then the time of
    a whole round.

    The ratios are printed at the end of the session, and times are in `extra_info` of
    `--benchmark-json`. Notes that are only known afterwards are added to what is returned.
    """
    comparison = Comparison(benchmark.name, dict(ways), images)
    comparison.warm_up()
    benchmark.pedantic(comparison.run_round, rounds=REPEATS)
    benchmark.extra_info |= {"seconds": comparison.seconds, "notes": comparison.notes}
    FINISHED.append(comparison)
    return comparison
