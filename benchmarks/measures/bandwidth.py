"""A run's performance against the bytes that had crossed when it was measured: the channel's ledger
beside the history.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.tables.measure import FittedCell, Measure, Taken, count_in, counted, mean_of_numbers
from metrics.names import BANDWIDTH
from results.record import Measurement

if TYPE_CHECKING:
    from federation.channel import Transfer
    from federation.data import Checkpoint


class Bandwidth(Measure):
    """The table's first metric and the bandwidth up to it, under the column key `round`."""

    every_epoch = True

    def take(self, run: FittedCell) -> Taken:
        metric, rounds = run.metrics[0], getattr(run.method, "rounds", None)
        ledger = run.federation.channel.ledger
        return Taken(*measure_traffic(metric, run.scale(metric), run.models, ledger, rounds))


def crossed(ledger: Sequence[Transfer], count: int, rounds: int | None = None) -> list[int]:
    """Bytes, of all clients and both ways, that had crossed when each of a history's `count` values
    was measured.

    A history with a value per round of the ledger was measured after each of them. Any other is of
    a model that was trained after everything had crossed. So is one where the method has fewer
    `rounds` of its own: FedMD books the last consensus, from which its central model learns, as one
    more.
    """
    per_round = Counter[int]()
    for transfer in ledger:
        per_round[transfer.round] += transfer.bytes
    last = max(per_round, default=0)
    if count != last or (rounds is not None and rounds < last):
        return [per_round.total()] * count
    return list(itertools.accumulate(per_round[number] for number in range(last + 1)))[1:]


def measure_traffic(
    metric: str,
    scale: float,
    fitted: Sequence[Checkpoint],
    ledger: Sequence[Transfer],
    rounds: int | None,
) -> tuple[tuple[Measurement, ...], str]:
    """The metric, mean over models, and the bandwidth in GB (10^9 bytes) up to it, in every round;
    and how they came about.
    """
    values = mean_of_numbers([checkpoint.history[metric] for checkpoint in fitted]) * scale
    sizes = crossed(ledger, len(values), rounds)
    measurements = []
    for place, (value, size) in enumerate(zip(values, sizes, strict=True)):
        counts = [count_in(checkpoint.history, metric, [place]) for checkpoint in fitted]
        at = f"round={place + 1}"
        measurements.append(counted(metric, value, counts, at))
        measurements.append(Measurement(BANDWIDTH, size / 1e9, at))
    if len(set(sizes)) > 1:
        how = f"after each of {len(values)} rounds, with the bytes until then"
    else:
        how = f"after each of {len(values)} epochs, when all bytes had crossed"
    return tuple(measurements), how + (", mean over models" if len(fitted) > 1 else "")


MEASURE = Bandwidth()
