"""What a run shows of itself while it goes on: losses, metrics, bytes and epsilon, to whoever
watches. Nobody does unless a command asks, and then no number is another."""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import SupportsFloat

from fedtables.federation.costs import TOGETHER, active_meter, client_here

POSITIONS = ("client", "round", "server")
"""Names of streams that say where and when, not what."""


@dataclass(frozen=True)
class Point:
    """One value of a curve."""

    series: str
    """What is shown and of whom, as `loss/client 1` or `bytes/up`."""
    step: int
    """1, 2, ...: the round, or the epoch counted through all rounds."""
    value: float


@dataclass
class Watch:
    """Takes the points of one run."""

    on_point: Callable[[Point], None]
    round: int = 1
    """The round that goes on."""


_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)
_trained: ContextVar[tuple[str, ...]] = ContextVar("trained", default=())


@contextlib.contextmanager
def watched(on_point: Callable[[Point], None] | None) -> Iterator[None]:
    """Give `on_point` all that is shown inside; None: nobody watches."""
    token = _watch.set(Watch(on_point) if on_point is not None else None)
    try:
        yield
    finally:
        _watch.reset(token)


def _watching() -> Watch | None:
    """Who sees what is shown here; nobody what a plan only follows."""
    return _watch.get() if active_meter() is None else None


def is_watched() -> bool:
    """Whether anybody sees what is shown, where it costs something to find out."""
    return _watching() is not None


def begin_round(number: int) -> None:
    """Epochs that are shown from now on are those of round `number`."""
    watch = _watching()
    if watch is not None:
        watch.round = number


def show(series: str, step: int, value: SupportsFloat) -> None:
    """Show one value of a series; it is only read, if it is a tensor (), when somebody watches."""
    watch = _watching()
    if watch is not None:
        watch.on_point(Point(series, step, float(value)))


def show_epoch(what: str, epoch: int, epochs: int, value: SupportsFloat) -> None:
    """Show a value of the `epoch`-th of `epochs` in each round, of the model that is `trained`."""
    watch = _watching()
    if watch is not None:
        client = client_here()
        place = () if client in (None, TOGETHER) else (f"client {client + 1}",)
        whose = " ".join((*place, *_trained.get())) or "server"
        show(f"{what}/{whose}", (watch.round - 1) * epochs + epoch, value)


@contextlib.contextmanager
def trained(*names: object) -> Iterator[None]:
    """Epochs inside are those of the training whose stream has these names: what tells it from
    others of its place, without numbers of clients and rounds.
    """
    words = (name for name in names if isinstance(name, str))
    token = _trained.set(tuple(word for word in words if word not in POSITIONS))
    try:
        yield
    finally:
        _trained.reset(token)
