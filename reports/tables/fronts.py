"""Methods in the plane of a cost and a gain, and which of them nothing beats there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reports.tables.ranking import front


@dataclass(frozen=True)
class Spot:
    """A method in a plane; where it was run at several costs, one of its places."""

    row: str
    cost: float
    gain: float
    """The more the better."""
    on_front: bool
    """Whether no other place of the plane beats it (`reports.tables.ranking.front`)."""
    cut_short: bool = False


def spots(places: Iterable[tuple[str, float, float, bool]]) -> tuple[Spot, ...]:
    """The places of one plane, each given as row, cost, gain and whether it was cut short; those
    that lack a number are beaten.
    """
    known = list(places)
    on = front([cost for _, cost, _, _ in known], [gain for _, _, gain, _ in known])
    return tuple(
        Spot(row, cost, gain, on_front, short)
        for (row, cost, gain, short), on_front in zip(known, on, strict=True)
    )
