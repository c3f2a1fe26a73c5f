"""The partition itself: which classes the clients of a slot hold, as DLAD's Table I prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedtables.benchmarks.tables.measure import Config, FittedCell, Measure, Taken
from fedtables.results.arrays import pack
from fedtables.results.record import Measurement

if TYPE_CHECKING:
    from fedtables.federation.federation import Federation


class Classes(Measure):
    """A text per slot of `partition.slot`, and how many samples of each class every client holds;
    nothing is fitted.
    """

    takes_no_method = "prints a partition"

    def needs_fit(self, config: Config) -> bool:
        return False

    def take(self, run: FittedCell) -> Taken:
        classes = classes_of_slot(run.federation, str(run.config["partition.slot"]))
        counts = np.array([client.label_counts for client in run.federation.clients])
        arrays = pack({"counts": counts})
        return Taken((Measurement(run.metrics[0], classes),), "the partition itself", arrays)


def classes_of_slot(federation: Federation, slot: str) -> str:
    """Classes that the clients of a slot `5n+k` really hold.

    Classes that every client holds come first, as a range where there are at least five in a row;
    then its own.
    """
    held = [{c for c, n in enumerate(client.label_counts) if n} for client in federation.clients]
    position = int(slot.partition("+")[2]) - 1
    group = {frozenset(classes) for classes in held[position::5]}
    if len(group) != 1:
        return "differs between clients of the slot"
    of_slot = set(group.pop())
    shared = sorted(set.intersection(*held))
    if len(shared) >= 5 and shared == list(range(shared[0], shared[-1] + 1)):
        return ",".join(
            [f"{shared[0]}-{shared[-1]}", *(str(c) for c in sorted(of_slot - set(shared)))]
        )
    return ",".join(str(c) for c in sorted(of_slot))


MEASURES = {"classes": Classes()}
