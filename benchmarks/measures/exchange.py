"""FedAD's Tables 4 and 5: what kind of things a run exchanges, how many bytes and at what cost to
privacy, read off its ledger, its method and what its fit looks at.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from benchmarks.measures import final
from benchmarks.tables.measure import FittedCell, Measure, Taken
from metrics.names import BANDWIDTH, PROPERTY
from results.record import Measurement

if TYPE_CHECKING:
    import torch

    from federation.channel import Transfer
    from federation.costs import Meter
    from federation.data import PublicData
    from federation.federation import Federation
    from federation.method import Method
    from federation.windows import Window

WEIGHTS = frozenset({"parameters", "gradients"})
ANSWERS = frozenset({"logits", "attention", "votes", "labels"})
"""Kinds of payload that tell of a client's data only what its network answers, and how many labels
of a class it has."""


class Exchange(Measure):
    """The numbers of `final`, and under the column key `property` whether each property holds;
    only the numbers of a method with an oracle, which exchanges what no real client would. Of what
    is exchanged the table may ask for `bandwidth-gb`, `privacy-cost` and `privacy-NAME` of the
    budgets that a method declares.
    """

    def take(self, run: FittedCell) -> Taken:
        learnt = tuple(name for name in run.metrics if not of_exchange(name))
        numbers = final.MEASURE.take(replace(run, metrics=learnt))
        if run.method.oracle:
            return numbers
        ledger = run.federation.channel.ledger
        spent = costs(ledger, run.method.declared_budgets)
        _, public = followed(run.method, run.on_meta({}))
        held = properties(ledger, public)
        asked = (Measurement(name, spent[name]) for name in run.metrics if name in spent)
        return Taken((*numbers.measurements, *asked, *measurements(held)), numbers.statistic)


class _Watched:
    """Public data that know whether anyone has looked at the images."""

    def __init__(self, public: PublicData):
        self._public = public
        self.seen = False

    def __len__(self) -> int:
        return len(self._public)

    @property
    def digest(self) -> str:
        return self._public.digest

    @property
    def window(self) -> Window | None:
        return self._public.window

    def cut(self, maps: torch.Tensor) -> torch.Tensor:
        return self._public.cut(maps)

    @property
    def images(self) -> torch.Tensor:
        self.seen = True
        return self._public.images


def followed(method: Method, federation: Federation) -> tuple[Meter, bool]:
    """What a fit takes, and whether it looks at the public images. `federation` is on the `meta`
    device, where nothing is computed.

    Followed there again, since the ledger does not know it and the fit itself may have come from
    the stage cache.
    """
    from federation.costs import Meter, metering

    watched = _Watched(federation.public)
    federation.public = cast("PublicData", watched)
    with metering(Meter()) as meter:
        method.fit(federation)
    return meter, watched.seen


def of_exchange(metric: str) -> bool:
    """Whether a metric is of what is exchanged, rather than of what is learnt."""
    return metric == BANDWIDTH or metric.startswith("privacy-")


def costs(ledger: Sequence[Transfer], budgets: Mapping[str, float]) -> dict[str, float]:
    """What a whole run's exchange costs, by metric: GB of all clients, both ways, and either the
    budgets that its method declares or, in one number, what the paper counts: infinite where
    anything but answers leaves a client, else 0. Nothing where nothing crosses.
    """
    if not ledger:
        return {}
    spent = {BANDWIDTH: sum(transfer.bytes for transfer in ledger) / 1e9}
    if budgets:
        return spent | {f"privacy-{name}": value for name, value in budgets.items()}
    up = {transfer.kind for transfer in ledger if transfer.direction == "up"}
    return spent | {"privacy-cost": 0.0 if up <= ANSWERS else math.inf}


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
