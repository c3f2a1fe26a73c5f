"""What the records of runs say of their cost: seconds, and accuracy at equal bytes and time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
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


def at_cost(records: Iterable[Record]) -> dict[Place, Mean]:
    """Wall time of clients and of the server, and accuracy in percent at equal bytes and at equal
    time, where every seed has one.

    Accuracy is cut short where a run was, and ended before it had cost as much.
    """
    found: dict[Place, list[tuple[float, bool]]] = {}
    for record in records:
        for metric, value, short in _of_run(record) if record.status == OK else ():
            place = (record.row, record.column, metric)
            found.setdefault(place, []).append((value, short))
    return {
        place: over_seeds([value for value, _ in seeds], any(short for _, short in seeds))
        for place, seeds in found.items()
        if all(math.isfinite(value) for value, _ in seeds)
    }


def _of_run(record: Record) -> Iterator[tuple[str, float, bool]]:
    """The same of one run, each with whether it was cut short; what it lacks is not a number."""
    for metric, place in TIMES:
        yield metric, record.fit_seconds.get(place, math.nan), False
    if not record.arrays:
        return
    arrays = unpack(record.arrays)
    accuracy, sent = 100 * arrays[ACCURACY], arrays["bytes"] / 1e6
    short = record.settled.get(ACCURACY) is False
    costs = {"mb": (sent, MEGABYTES), "s": (seconds_by_epoch(record, len(accuracy)), SECONDS)}
    for unit, (cost, limits) in costs.items():
        for limit in limits:
            ended = bool(short and cost[-1] <= limit)
            yield f"{ACCURACY}-at-{limit}-{unit}", reached(accuracy, cost, limit), ended


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
