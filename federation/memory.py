"""Memory that a run would need, for plans."""

from __future__ import annotations

import weakref
from collections import Counter
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Memory:
    """Bytes that are held at one time, beside the framework."""

    device: int = 0
    host: int = 0
    """Of a GPU's machine; on a CPU both are one."""

    def __add__(self, other: Memory) -> Memory:
        return Memory(self.device + other.device, self.host + other.host)

    def __or__(self, other: Memory) -> Memory:
        """Enough for the one or for the other."""
        return Memory(max(self.device, other.device), max(self.host, other.host))


class Answers:
    """Networks' outputs for whole sets, as long as they, or views of them, are kept."""

    def __init__(self) -> None:
        self._kept: dict[int, Memory] = {}

    def of(self, answers: torch.Tensor) -> Memory:
        """What is counted for the memory of answers; nothing for those that are not kept."""
        return self._kept.get(answers.untyped_storage()._cdata, Memory())

    @property
    def now(self) -> Memory:
        return sum(self._kept.values(), Memory())

    def keep(self, answers: torch.Tensor, memory: Memory) -> None:
        """Count `memory` until the answers are gone; of known ones in place of what it was."""
        storage = answers.untyped_storage()
        if storage._cdata not in self._kept:
            weakref.finalize(storage, self._kept.pop, storage._cdata)
        self._kept[storage._cdata] = memory


class Saved:
    """Bytes that autograd keeps for passes back."""

    def __init__(self) -> None:
        self.total = self.now = self.most = 0
        """All together, a tensor each time that it is kept; at this time, memory once; at one time,
        at most."""
        self.kept: Counter[int] = Counter()
        """How often memory is kept at this time."""

    def keep(self, tensor: torch.Tensor) -> KeptTensor:
        """A hook for what autograd saves."""
        return KeptTensor(tensor, self)


class KeptTensor:
    """A tensor that autograd keeps, until it drops this."""

    def __init__(self, tensor: torch.Tensor, saved: Saved) -> None:
        self.tensor, self._saved = tensor, saved
        saved.total += tensor.nbytes
        self._change(1)
        saved.most = max(saved.most, saved.now)

    def __del__(self) -> None:
        self._change(-1)

    def _change(self, times: int) -> None:
        memory = self.tensor.untyped_storage()
        before = self._saved.kept[memory._cdata]
        self._saved.kept[memory._cdata] += times
        if not before or before + times == 0:
            self._saved.now += times * memory.nbytes()
