"""Counts the samples that networks learn from, while they do: what a run has cost its clients and
its server, beside the bytes that the channel counts.

A sample counts each time that it passes, in training, through a network that learns; for the
clients where that happens on one of them (`Client.run`), else for the server. Outputs of a finished
network cost nothing here.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from federation.costs import Work, active_meter

LOCAL, SERVER = "local", "server"


class SamplesSeen:
    """Samples seen by clients (`local`) and by the server, and in the stages that were asked for:
    each of these once, whoever computed it, so that a run has the same count whatever it finds in
    the cache.
    """

    def __init__(self) -> None:
        self._now: Counter[str] = Counter()
        self._stages: dict[str, Mapping[str, int]] = {}

    def add(self, place: str, samples: int) -> None:
        """Count `samples` that were seen just now."""
        self._now[place] += samples

    def add_stage(self, key: str, seen: Mapping[str, int]) -> None:
        """Count what a stage took, by place."""
        self._stages[key] = seen

    def total(self) -> dict[str, int]:
        """Samples by place."""
        parts = (self._now, *self._stages.values())
        return {place: sum(part.get(place, 0) for part in parts) for place in (LOCAL, SERVER)}

    def state_dict(self) -> dict[str, Any]:
        """Plain values, for snapshots."""
        stages = {key: dict(seen) for key, seen in self._stages.items()}
        return {"now": dict(self._now), "stages": stages}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._now, self._stages = Counter(state["now"]), dict(state["stages"])


_active: ContextVar[SamplesSeen | None] = ContextVar("samples", default=None)
_place: ContextVar[str] = ContextVar("place", default=SERVER)


def active_count() -> SamplesSeen | None:
    """What samples are counted in now; None where nobody asks."""
    return _active.get()


def see(samples: int) -> None:
    """Count samples that a network learns from, where the code runs; in a plan, on the meter."""
    if (meter := active_meter()) is not None:
        meter.book(Work(training_samples=samples), 0, 1)
    count = _active.get()
    if count is not None:
        count.add(_place.get(), samples)


@contextlib.contextmanager
def counted() -> Iterator[SamplesSeen]:
    """Count all that is seen inside, and not for whoever counts outside."""
    count = SamplesSeen()
    token = _active.set(count)
    try:
        yield count
    finally:
        _active.reset(token)


@contextlib.contextmanager
def on_client() -> Iterator[None]:
    """What is seen inside is seen by a client, and what is booked while planning is its work."""
    token, meter = _place.set(LOCAL), active_meter()
    was_local = meter is not None and meter.local
    if meter is not None:
        meter.local = True
    try:
        yield
    finally:
        _place.reset(token)
        if meter is not None:
            meter.local = was_local
