"""Loops of a fit: rounds that an interrupted fit goes on from, and steps that cost the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from federation.channel import Channel, Transfer
from federation.costs import Meter, Work, active_meter
from federation.inside.evaluation import Evaluation
from federation.inside.privacy import Privacy
from federation.inside.setup import Setup
from federation.inside.stages import Stages
from federation.samples import active_count
from federation.watching import begin_round, is_watched, show
from privacy.plan import RELEASED


class Rounds:
    """Counts rounds for the channel, and keeps them while a fit goes on."""

    def __init__(self, setup: Setup, evaluation: Evaluation, privacy: Privacy, stages: Stages):
        self._channel = setup.channel
        self._progress = setup.progress
        self._evaluation = evaluation
        self._privacy = privacy
        self._stages = stages

    def rounds(self, count: int, *, alike: bool = False, **parts: Any) -> Iterator[int]:
        """As `Federation.rounds`."""
        meter = active_meter()
        if meter is not None and alike:
            with meter.repeated(count, counted=False):
                self._channel.round = 1
                self._evaluation.begin_round(1, count, for_all=True)
                yield 1
            self._evaluation.end_rounds()
            return
        if self._privacy.protection is not None:
            parts = {**parts, "protection": self._privacy.protection}
        if (samples := active_count()) is not None:
            parts = {**parts, "samples seen": samples}
        done, snapshots = 0, self._stages.snapshots
        if snapshots is not None:
            done, history, ledger = snapshots.resume(parts)
            self._evaluation.begin_history(history)
            if done:
                self._channel.restore(ledger)
        try:
            for number in range(done + 1, count + 1):
                self._channel.round = number
                self._evaluation.begin_round(number, count)
                self._progress(f"round {number}/{count}", (number - 1) / count)
                begin_round(number)
                yield number
                show_spent(number, self._channel, self._privacy)
                if snapshots is not None:
                    snapshots.offer(number, parts, self._evaluation.history, self._channel.ledger)
        finally:
            self._evaluation.end_rounds()

    def steps(self, count: int, *, name: str = "") -> Iterator[int]:
        """As `Federation.steps`. Steps of one name are followed once for every fit of the method
        with the same settings, networks and clients.
        """
        meter = active_meter()
        if meter is None:
            yield from range(count)
        elif count and name and (meter.kind, name) in meter.steps:
            self._book(meter, meter.steps[meter.kind, name], count)
        elif count:
            times, work, ledger = count * meter.times, meter.work, self._channel.ledger
            highest, meter.peak_bytes = meter.peak_bytes, 0
            try:
                with meter.repeated(count, counted=True):
                    yield 0
                if name:
                    messages = _per_step(ledger, self._channel.ledger, times)
                    step = Step((meter.work - work) // times, meter.peak_bytes, messages)
                    meter.steps[meter.kind, name] = step
            finally:
                meter.peak_bytes = max(highest, meter.peak_bytes)

    def _book(self, meter: Meter, step: Step, count: int) -> None:
        meter.book(step.work, step.peak_bytes, count)
        for message in step.messages:
            now = dataclasses.replace(message, round=self._channel.round)
            self._channel.book(now, count * meter.times)


def show_spent(number: int, channel: Channel, privacy: Privacy) -> None:
    """Show bytes and epsilon after round `number`, if somebody watches."""
    if not is_watched():
        return
    for direction in ("up", "down"):
        show(f"bytes/{direction}", number, channel.total(direction))
    if privacy.protection is not None and privacy.mechanism != RELEASED:
        show("epsilon", number, privacy.protection.accountant.epsilon())


@dataclass(frozen=True)
class Step:
    """A step of a loop that a plan has followed."""

    work: Work
    peak_bytes: int
    messages: tuple[Transfer, ...]
    """What crosses, by round, direction, kind and client."""


def _per_step(
    before: Sequence[Transfer], after: Sequence[Transfer], steps: int
) -> tuple[Transfer, ...]:
    """The messages of each of `steps` equal steps, between which two ledgers were taken."""
    earlier = {(t.round, t.direction, t.kind, t.client): t for t in before}
    messages = []
    for t in after:
        was = earlier.get((t.round, t.direction, t.kind, t.client))
        size = (t.bytes - (was.bytes if was else 0)) // steps
        number = (t.messages - (was.messages if was else 0)) // steps
        if number:
            messages.append(dataclasses.replace(t, bytes=size, messages=number))
    return tuple(messages)
