"""Counts the samples that networks learn from, while they do, and the time that takes: what a run
has cost its clients and its server, beside the bytes that the channel counts.

A sample counts each time that it passes, in training, through a network that learns; for the
clients where that happens on one of them (`Client.run`), else for the server. Outputs of a finished
network cost no samples here, but time.
"""

import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from fedtables.federation.costs import Work, active_meter, at_client, client_here

LOCAL, SERVER = "local", "server"
SECONDS, LOCAL_SECONDS = "seconds", "local-seconds"
"""Wall time, and the part of it in which a client computes."""


class SamplesSeen:
    """Samples seen by clients (`local`) and by the server and the seconds that took, here and in
    the stages that were asked for: each of these once, whoever computed it, so that a run has the
    same count whatever it finds in the cache.
    """

    def __init__(self) -> None:
        self._now: Counter[str] = Counter()
        self._stages: dict[str, Mapping[str, Any]] = {}
        self._started = time.perf_counter()

    def add(self, name: str, amount: Any) -> None:
        """Count samples that were seen just now at `LOCAL` or `SERVER`, or seconds that passed."""
        self._now[name] += amount

    def add_stage(self, key: str, took: Mapping[str, Any]) -> None:
        """Count the `amounts` of a stage: all of them as a client's where a client asks for it."""
        if client_here() is not None:
            samples = took.get(LOCAL, 0) + took.get(SERVER, 0)
            seconds = took.get(SECONDS, 0.0)
            took = {LOCAL: samples, SECONDS: seconds, LOCAL_SECONDS: seconds}
        self._stages[key] = took

    def amounts(self) -> dict[str, Any]:
        """Samples and seconds by name."""
        parts = (self._running(), *self._stages.values())
        names = (LOCAL, SERVER, SECONDS, LOCAL_SECONDS)
        return {name: sum(part.get(name, 0) for part in parts) for name in names}

    def total(self) -> dict[str, int]:
        """Samples by place."""
        amounts = self.amounts()
        return {place: amounts[place] for place in (LOCAL, SERVER)}

    def seconds(self) -> dict[str, float]:
        """Wall seconds by place."""
        amounts = self.amounts()
        local = amounts[LOCAL_SECONDS]
        return {LOCAL: local, SERVER: amounts[SECONDS] - local}

    def stop(self) -> None:
        """Let no more time count."""
        self._now, self._started = self._running(), float("inf")

    def state_dict(self) -> dict[str, Any]:
        """Plain values, for snapshots."""
        stages = {key: dict(took) for key, took in self._stages.items()}
        return {"now": dict(self._running()), "stages": stages}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._now, self._stages = Counter(state["now"]), dict(state["stages"])
        self._started = time.perf_counter()

    def _running(self) -> Counter[str]:
        passed = max(0.0, time.perf_counter() - self._started)
        return Counter({**self._now, SECONDS: self._now[SECONDS] + passed})


_active: ContextVar[SamplesSeen | None] = ContextVar("samples", default=None)


def active_count() -> SamplesSeen | None:
    """What samples are counted in now; None where nobody asks."""
    return _active.get()


def see(samples: int) -> None:
    """Count samples that a network learns from, where the code runs; in a plan, on the meter."""
    if (meter := active_meter()) is not None:
        meter.book(Work(training_samples=samples), 0, 1)
    count = _active.get()
    if count is not None:
        count.add(SERVER if client_here() is None else LOCAL, samples)


@contextlib.contextmanager
def counted() -> Iterator[SamplesSeen]:
    """Count all that is seen and takes time inside, and not for whoever counts outside."""
    count = SamplesSeen()
    token = _active.set(count)
    try:
        yield count
    finally:
        _active.reset(token)
        count.stop()


@contextlib.contextmanager
def apart() -> Iterator[None]:
    """The time that passes inside is not of whoever counts: it is a stage's own."""
    count, started = _active.get(), time.perf_counter()
    try:
        yield
    finally:
        if count is not None:
            passed = time.perf_counter() - started
            count.add(SECONDS, -passed)
            if client_here() is not None:
                count.add(LOCAL_SECONDS, -passed)


@contextlib.contextmanager
def aside() -> Iterator[None]:
    """Nothing inside counts, and a plan books it as a look: it is done to look at a run."""
    meter = active_meter()
    with apart(), contextlib.nullcontext() if meter is None else meter.having(looks=True):
        token = _active.set(None)
        try:
            yield
        finally:
            _active.reset(token)


@contextlib.contextmanager
def on_client(index: int) -> Iterator[None]:
    """What is seen, booked and takes time inside is of client `index`, or of several."""
    outer, count, started = client_here(), _active.get(), time.perf_counter()
    try:
        with at_client(index):
            yield
    finally:
        if count is not None and outer is None:
            count.add(LOCAL_SECONDS, time.perf_counter() - started)
