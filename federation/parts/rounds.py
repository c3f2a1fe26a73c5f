"""Loops of a fit: rounds that an interrupted fit goes on from, and steps that cost the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from federation.channel import Channel
from federation.costs import active_meter
from federation.parts.evaluation import Evaluation
from federation.parts.privacy import Privacy
from federation.parts.stages import Stages
from federation.samples import active_count


class Rounds:
    """Counts rounds for the channel, and keeps them while a fit goes on."""

    def __init__(
        self,
        channel: Channel,
        evaluation: Evaluation,
        privacy: Privacy,
        stages: Stages,
        progress: Callable[[str, float], None],
    ):
        self._channel = channel
        self._evaluation = evaluation
        self._privacy = privacy
        self._stages = stages
        self._progress = progress

    def rounds(self, count: int, *, alike: bool = False, **parts: Any) -> Iterator[int]:
        """Rounds 1 to `count`, booked as such by the channel; an interrupted fit goes on after its
        last snapshot.

        `parts` are all that a round takes over from the one before (anything with state_dict and
        load_state_dict). Randomness must come from streams named by the round. With `alike` every
        round costs the same, so that `plan` follows one and counts it `count` times.
        """
        meter = active_meter()
        if meter is not None and alike:
            with meter.repeated(count, counted=False):
                self._channel.round = 1
                yield 1
            return
        if self._privacy.protection is not None:
            parts = {**parts, "protection": self._privacy.protection}
        if (samples := active_count()) is not None:
            parts = {**parts, "samples seen": samples}
        done, snapshots = 0, self._stages.snapshots
        if snapshots is not None:
            done, self._evaluation.history, ledger = snapshots.resume(parts)
            if done:
                self._channel.restore(ledger)
        for number in range(done + 1, count + 1):
            self._channel.round = number
            self._progress(f"round {number}/{count}", (number - 1) / count)
            yield number
            if snapshots is not None:
                snapshots.offer(number, parts, self._evaluation.history, self._channel.ledger)

    def steps(self, count: int) -> Iterator[int]:
        """Steps 0 to `count` - 1 of a loop whose steps cost the same; `plan` follows one and counts
        it `count` times.
        """
        meter = active_meter()
        if meter is None:
            yield from range(count)
        elif count:
            with meter.repeated(count, counted=True):
                yield 0
