"""Snapshots of a fit between its rounds, so that a killed run goes on from the last one."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any

import torch

from federation.cache import Stage, read_stage, write_stage
from federation.channel import Transfer
from results.files import displace

FIELDS = {"round", "history", "ledger", "parts"}
"""What a snapshot says beside its tensors."""


def pack(value: Any, tensors: dict[str, torch.Tensor]) -> Any:
    """A nested state (dictionaries, lists, tensors, plain values) as JSON; its tensors are put into
    `tensors`.
    """
    if isinstance(value, torch.Tensor):
        name = str(len(tensors))
        tensors[name] = value
        return {"tensor": name}
    if isinstance(value, Mapping):
        return {"items": [[key, pack(entry, tensors)] for key, entry in value.items()]}
    if isinstance(value, list | tuple):
        return {"list": [pack(entry, tensors) for entry in value]}
    return {"value": value}


def unpack(packed: Any, tensors: Mapping[str, torch.Tensor]) -> Any:
    """The inverse of `pack`, with lists for tuples."""
    ((kind, content),) = packed.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "items":
        return {key: unpack(entry, tensors) for key, entry in content}
    if kind == "list":
        return [unpack(entry, tensors) for entry in content]
    return content


class Snapshots:
    """Snapshots of one fit, at `base`; one is written when `every` seconds have passed since the
    last.

    The last two are kept, so that a kill while one is written costs no more than that one.
    """

    def __init__(self, base: Path, newer_than: float = 0.0, every: float = 60.0):
        self._slots = [base.with_name(f"{base.name}-{slot}") for slot in (0, 1)]
        self._latest = 0
        self._newer_than = newer_than
        self._every = every
        self._last = time.monotonic()

    def resume(
        self, parts: Mapping[str, Any]
    ) -> tuple[int, dict[str, list[float]], list[Transfer]]:
        """Restore `parts` (anything with load_state_dict); returns rounds done, history and ledger
        so far.
        """
        # On the CPU: each part takes what it needs to its own device. Optimisers leave their counts
        # of steps where they get them, and with these on a GPU would wait for it at every step and
        # parameter.
        stages = [read_stage(base, newer_than=self._newer_than)[0] for base in self._slots]
        whole = [
            (stage.info["round"], slot, stage)
            for slot, stage in enumerate(stages)
            if stage is not None and stage.info.keys() >= FIELDS
        ]
        if not whole:
            return 0, {}, []
        _, self._latest, stage = max(whole, key=lambda entry: entry[0])
        for name, part in parts.items():
            part.load_state_dict(unpack(stage.info["parts"][name], stage.tensors))
        return (
            stage.info["round"],
            stage.info["history"],
            [Transfer(*entry) for entry in stage.info["ledger"]],
        )

    def offer(
        self,
        number: int,
        parts: Mapping[str, Any],
        history: Mapping[str, list[float]],
        ledger: Iterable[Transfer],
    ) -> None:
        """Take a snapshot after round `number` if it is time."""
        if time.monotonic() - self._last < self._every:
            return
        tensors: dict[str, torch.Tensor] = {}
        packed = {name: pack(part.state_dict(), tensors) for name, part in parts.items()}
        info = {
            "round": number,
            "history": dict(history),
            "ledger": [astuple(t) for t in ledger],
            "parts": packed,
        }
        self._latest = 1 - self._latest
        write_stage(self._slots[self._latest], Stage(tensors, info))
        self._last = time.monotonic()

    def discard(self) -> None:
        """The fit is complete; its result is kept elsewhere."""
        for base in self._slots:
            for suffix in (".json", ".safetensors"):
                displace(base.with_suffix(suffix))
                base.with_suffix(suffix).unlink(missing_ok=True)
