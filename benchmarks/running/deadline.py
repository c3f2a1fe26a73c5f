"""An end that is set beforehand, as a cluster sets one for a job."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass


class OutOfTimeError(Exception):
    """The time that was allowed is over."""


@dataclass(frozen=True)
class Deadline:
    """When cells must have ended."""

    at: float = math.inf
    """On the clock of `time.monotonic`."""

    @classmethod
    def after(cls, minutes: float) -> Deadline:
        """In so many minutes; never for 0."""
        return cls(time.monotonic() + 60 * minutes if minutes else math.inf)

    def left(self) -> float | None:
        """Seconds to wait for something before asking again, at most an hour of those left; None:
        as long as it takes. Raises OutOfTimeError if none are left.
        """
        if self.at == math.inf:
            return None
        seconds = self.at - time.monotonic()
        if seconds <= 0:
            raise OutOfTimeError
        return min(seconds, 3600)  # more overflows what `poll` takes, from 25 days on


NEVER = Deadline()
