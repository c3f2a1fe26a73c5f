"""What the records of runs say of their cost: seconds, and accuracy at equal bytes and time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from metrics.names import CLIENT_SECONDS, SERVER_SECONDS
from results.arrays import unpack
from results.record import OK, Record

ACCURACY = "accuracy"
MEGABYTES = (1, 10, 100)
"""What both ways together may have sent, for accuracy at equal bytes."""
SECONDS = (10, 30, 100)
"""Of computing, for accuracy at equal time."""
TIMES = ((CLIENT_SECONDS, "local"), (SERVER_SECONDS, "server"))
"""Metrics of time, each with its name in a record."""

Place = tuple[str, str, str]
"""Row, column and metric."""


@dataclass(frozen=True)
class Mean:
    """One number over seeds."""

    mean: float
    std: float
    """Over seeds, n - 1; not a number for fewer than two."""
    n: int
    """How many seeds."""
    cut_short: bool = False
    """Whether any of the runs ended before what it is of had settled."""


def over_seeds(values: Sequence[float], cut_short: bool = False) -> Mean:
    """One or more values, one of each seed, as one."""
    std = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
    return Mean(float(np.mean(values)), std, len(values), cut_short)


def seconds(records: Iterable[Record]) -> dict[Place, Mean]:
    """Wall time of clients and of the server, where every seed's record has it."""
    found: dict[Place, list[float]] = {}
    for record in records:
        for metric, place in TIMES if record.status == OK else ():
            key = (record.row, record.column, metric)
            found.setdefault(key, []).append(record.fit_seconds.get(place, math.nan))
    return {key: over_seeds(values) for key, values in found.items() if np.isfinite(values).all()}


def at_equal_cost(records: Iterable[Record]) -> dict[Place, Mean]:
    """Accuracy in percent at equal bytes and at equal time, where every seed has one.

    It is cut short where a run was, and ended before it had cost as much.
    """
    found: dict[Place, list[float]] = {}
    short: set[Place] = set()
    for record in records:
        if record.status != OK or not record.arrays:
            continue
        arrays = unpack(record.arrays)
        accuracy = 100 * arrays[ACCURACY]
        sent, passed = arrays["bytes"] / 1e6, seconds_by_epoch(record, len(accuracy))
        for name, cost, limits in (("mb", sent, MEGABYTES), ("s", passed, SECONDS)):
            for limit in limits:
                key = (record.row, record.column, f"{ACCURACY}-at-{limit}-{name}")
                found.setdefault(key, []).append(reached(accuracy, cost, limit))
                if record.settled.get(ACCURACY) is False and cost[-1] <= limit:
                    short.add(key)
    return {
        key: over_seeds(values, key in short)
        for key, values in found.items()
        if np.isfinite(values).all()
    }


def reached(history: np.ndarray, spent: np.ndarray, limit: float) -> float:
    """The last value of a history (n,) whose cost (n,) is within `limit`; not a number where even
    the first costs more.
    """
    within = int(np.searchsorted(spent, limit, side="right"))
    return float(history[within - 1]) if within else math.nan


def seconds_by_epoch(record: Record, epochs: int) -> np.ndarray:
    """Seconds that had passed at the end of each epoch or round of a run's history, (epochs,).

    Time of the history is taken as even: of the whole fit where bytes cross in its rounds, and of
    the server alone, behind all that clients do, where all has crossed before. Nothing where a
    record does not say how long it took.
    """
    local, server = (record.fit_seconds.get(place, math.nan) for place in ("local", "server"))
    share = np.arange(1, epochs + 1) / epochs
    sent = unpack(record.arrays)["bytes"]
    one_shot = epochs > 1 and sent[0] == sent[-1] > 0
    return local + server * share if one_shot else (local + server) * share
