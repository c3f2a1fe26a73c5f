"""FedAD's Table 4: what kind of things a run exchanges, read off its ledger and off what its fit
looks at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from metrics.names import PROPERTY
from results.record import OK, Measurement, Record

if TYPE_CHECKING:
    import torch

    from federation.channel import Transfer
    from federation.data import PublicData
    from federation.federation import Federation
    from federation.method import Method

WEIGHTS = frozenset({"parameters", "gradients"})
ANSWERS = frozenset({"logits", "attention", "votes", "labels"})
"""Kinds of payload that tell of a client's data only what its network answers, and how many labels
of a class it has."""

PROPERTIES: Mapping[str, str] = {
    "distillation": "the fit looks at the public images",
    "param-transfer": "parameters or gradients cross, in either direction",
    "privacy": (
        "nothing leaves a client but outputs, attention, votes and labels or their counts: no"
        " parameters, gradients, features or images; what these outputs tell of its films is"
        " bounded by nothing, and labelled films that a server holds for validation (FedDF) are"
        " counted as its own"
    ),
    "asynchronous": (
        "nothing comes down to a client, and none sends the same kind of thing in two rounds; so"
        " FedAD is where it is one-shot, and is not where clients answer anew in every epoch"
    ),
}
"""What each property says of a run, as it is derived."""


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
    """Each of `PROPERTIES`, from a whole run's ledger and whether its fit looks at the public
    images.
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


def measurements(found: Mapping[str, bool]) -> tuple[Measurement, ...]:
    """Properties as texts of a table."""
    return tuple(
        Measurement(PROPERTY, "yes" if holds else "no", f"property={name}")
        for name, holds in found.items()
    )


def told(titles: Mapping[str, str], records: Sequence[Record]) -> list[str]:
    """What each property means, and which kinds of payload crossed in each row (title by key)."""
    kinds: dict[str, set[str]] = {}
    for record in records:
        if record.status == OK:
            kinds.setdefault(record.row, set()).update(record.bytes_by_kind)
    crossed = [
        f"{title}: {' and '.join(f'{_named(kinds[row], way)} {way}' for way in ('up', 'down'))}"
        for row, title in titles.items()
        if row in kinds
    ]
    return [
        *(f"{name}: {meaning}" for name, meaning in PROPERTIES.items()),
        *(["crossed: " + "; ".join(crossed)] if crossed else []),
    ]


def _named(kinds: set[str], way: str) -> str:
    return (
        ", ".join(sorted(kind.partition("/")[2] for kind in kinds if kind.startswith(f"{way}/")))
        or "nothing"
    )
