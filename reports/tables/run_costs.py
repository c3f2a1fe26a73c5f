"""What the records of runs say of their cost: seconds, and accuracy at equal bytes and time."""

import math
from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

from fedtables.metrics.names import CLIENT_SECONDS, SERVER_SECONDS
from fedtables.results.arrays import unpack
from fedtables.results.record import OK, Record
from fedtables.results.store import PLACE

ACCURACY = "accuracy"
MEGABYTES = (1, 10, 100)
"""What both ways together may have sent, for accuracy at equal bytes."""
SECONDS = (10, 30, 100)
"""Of computing, for accuracy at equal time."""
TIMES = ((CLIENT_SECONDS, "local"), (SERVER_SECONDS, "server"))
"""Metrics of time, each with its name in a record."""


def at_cost(records: Iterable[Record]) -> pd.DataFrame:
    """Wall time of clients and of the server, and accuracy in percent at equal bytes and at equal
    time, where every seed has one: by row, column and metric the mean over seeds, their deviation
    (n - 1; not a number for one), their number, and whether any was cut short.

    Accuracy is cut short where a run was, and ended before it had cost as much.
    """
    runs = [
        (record.row, record.column, *found)
        for record in records
        if record.status == OK
        for found in _of_run(record)
    ]
    frame = pd.DataFrame(runs, columns=[*PLACE, "value", "short"]).astype({"value": float})
    found = frame.groupby(PLACE, sort=False).agg(
        mean=("value", lambda values: np.mean(values.to_numpy())),
        std=(
            "value",
            lambda values: np.std(values.to_numpy(), ddof=1) if len(values) > 1 else math.nan,
        ),
        n=("value", "size"),
        known=("value", "count"),
        short=("short", "any"),
    )
    return found[found["known"] == found["n"]].drop(columns="known")


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
