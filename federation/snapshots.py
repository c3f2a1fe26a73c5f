"""Snapshots of a fit between its rounds, so that a killed run goes on from the last one."""

import io
import pickle
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from fedtables.federation.cache import is_new
from fedtables.results.files import digest, displace, write_atomic

SEAL = 64
"""Characters of the SHA-256 that a snapshot's file begins with."""


class Snapshots:
    """The last snapshot of one fit, in a file; one is written when `every` seconds have passed
    since the last, and until it is whole the file has that.
    """

    def __init__(self, path: Path, newer_than: float = 0.0, every: float = 60.0):
        self._path = path
        self._newer_than = newer_than
        self._every = every
        self._last = time.monotonic()

    def resume(self, parts: Mapping[str, Any]) -> int:
        """Restore `parts` (with load_state_dict); returns the rounds done, 0 without a snapshot."""
        try:
            sealed = self._path.read_bytes() if is_new(self._path, self._newer_than) else b""
        except OSError:
            return 0
        raw = sealed[SEAL:]
        if sealed[:SEAL] != digest(raw).encode():
            return 0
        # On the CPU: each part takes what it needs to its own device. Optimisers leave their counts
        # of steps where they get them, and with these on a GPU would wait for it at every step and
        # parameter.
        try:
            found = torch.load(io.BytesIO(raw), map_location="cpu", weights_only=True)
        except pickle.UnpicklingError:  # of a part with other values than tensors and plain ones
            return 0
        for name, part in parts.items():
            part.load_state_dict(found["parts"][name])
        rounds: int = found["round"]
        return rounds

    def offer(self, number: int, parts: Mapping[str, Any]) -> None:
        """Take a snapshot of `parts` (with state_dict) after round `number`, if it is time."""
        if time.monotonic() - self._last < self._every:
            return
        states = {name: part.state_dict() for name, part in parts.items()}
        stream = io.BytesIO()
        torch.save({"round": number, "parts": states}, stream)
        raw = stream.getvalue()
        displace(self._path)
        write_atomic(self._path, digest(raw).encode() + raw)
        self._last = time.monotonic()

    def discard(self) -> None:
        """The fit is complete; its result is kept elsewhere."""
        displace(self._path)
        self._path.unlink(missing_ok=True)
