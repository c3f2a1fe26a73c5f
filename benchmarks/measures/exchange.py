"""FedAD's Table 4: what kind of things a run exchanges, read off its ledger and off what its fit
looks at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from benchmarks.measures import final
from benchmarks.tables.measure import Fitted, Measure, Taken
from metrics.names import PROPERTY
from results.record import Measurement

if TYPE_CHECKING:
    import torch

    from federation.channel import Transfer
    from federation.federation import Federation
    from federation.method import Method
    from federation.parties.data import PublicData

WEIGHTS = frozenset({"parameters", "gradients"})
ANSWERS = frozenset({"logits", "attention", "votes", "labels"})
"""Kinds of payload that tell of a client's data only what its network answers, and how many labels
of a class it has."""


class Exchange(Measure):
    """The numbers of `final`, and under the column key `property` whether each property holds;
    only the numbers of a method with an oracle, which exchanges what no real client would.
    """

    def take(self, run: Fitted) -> Taken:
        numbers = final.MEASURE.take(run)
        if run.method.oracle:
            return numbers
        held = properties(run.federation.channel.ledger, uses_public(run.method, run.on_meta()))
        return Taken((*numbers.measurements, *measurements(held)), numbers.statistic)


class _Watched:
    """Public data that know whether anyone has looked at the images."""

    def __init__(self, public: PublicData):
        self._public = public
        self.digest = public.digest
        self.seen = False

    def __len__(self) -> int:
        return len(self._public)

    @property
    def images(self) -> torch.Tensor:
        self.seen = True
        return self._public.images


def uses_public(method: Method, federation: Federation) -> bool:
    """Whether a fit looks at the public images. `federation` is on the `meta` device, where nothing
    is computed.

    Followed there again, since the ledger does not know it and the fit itself may have come from
    the stage cache.
    """
    from federation.costs import Meter, metering

    watched = _Watched(federation.public)
    federation.public = cast("PublicData", watched)
    with metering(Meter()):
        method.fit(federation)
    return watched.seen


def properties(ledger: Sequence[Transfer], public: bool) -> dict[str, bool]:
    """Each property by name, from a whole run's ledger and whether its fit looks at the public
    images; `reports.kinds.exchange` says what each means.
    """
    up, down = (
        {t.kind for t in ledger if t.direction == direction} for direction in ("up", "down")
    )
    rounds = Counter(
        (t.client, t.kind) for t in ledger if t.direction == "up"
    )  # the ledger has an entry per round
    return {
        "distillation": public,
        "param-transfer": not WEIGHTS.isdisjoint(up | down),
        "privacy": up <= ANSWERS,
        "asynchronous": not down and max(rounds.values(), default=0) <= 1,
    }


def measurements(property_values: Mapping[str, bool]) -> tuple[Measurement, ...]:
    """Properties as texts of a table."""
    return tuple(
        Measurement(PROPERTY, "yes" if holds else "no", f"property={name}")
        for name, holds in property_values.items()
    )


MEASURE = Exchange()
