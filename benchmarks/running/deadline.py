"""An end that is set beforehand, as a cluster sets one for a job."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import NoReturn

from benchmarks.tables.spec import SpecError


class OutOfTime(BaseException):
    """The time that was allowed is over; nothing that takes errors for a cell's may take this."""


@contextlib.contextmanager
def time_limit(minutes: float) -> Iterator[None]:
    """Raise OutOfTime in the main thread when `minutes` are over; never if they are 0.

    Raises SpecError for less than 0, and where a process has no alarm clock.
    """
    if minutes < 0:
        raise SpecError(f"--minutes takes minutes above 0, not {minutes:g}")
    if not minutes:
        yield
        return
    if not hasattr(signal, "setitimer"):
        raise SpecError("--minutes needs a system with alarm signals; leave it out")

    def end(*_: object) -> NoReturn:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, 60 * minutes)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
