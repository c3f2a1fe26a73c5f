"""What a CUDA graph does, on any device: the operations of a step are noted, with the tensors that
they read and wrote, and done again with the same tensors.

A number that the step read from the host while it was recorded stays that number, and Python that
decides something decided once: a step that must not be replayed ends elsewhere.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from federation.graphs.replay import RECORDERS


class _Notes(TorchDispatchMode):
    """Operations inside, and the memory that they touch as it was before."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[tuple[Any, Any, Any, list[torch.Tensor]]] = []
        self.before: dict[int, tuple[torch.UntypedStorage, torch.UntypedStorage]] = {}

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.ops.aten._local_scalar_dense.default:
            raise RuntimeError("operation not permitted when stream is capturing: item")
        for tensor in _tensors((args, kwargs)):  # BatchNorm does not say that it writes
            memory = tensor.untyped_storage()
            if memory.data_ptr() not in self.before:
                self.before[memory.data_ptr()] = memory, memory.clone()
        written = func(*args, **kwargs)
        self.taken.append((func, args, kwargs, _tensors(written)))
        return written


def _tensors(tree: object) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


class Tape:
    """A recorder that counts what it recorded and replayed."""

    def __init__(self) -> None:
        self.recorded = self.replayed = 0

    def aside(self) -> contextlib.AbstractContextManager[None]:
        """Nothing to do: steps that warm up are as others."""
        return contextlib.nullcontext()

    def record(
        self, step: Callable[[], None], generators: Sequence[torch.Generator]
    ) -> Callable[[], None]:
        """What does the operations of `step` again; `generators` are what it draws from.

        Raises RuntimeError, as CUDA does, for a step that waits for the device.
        """
        self.recorded += 1
        sources = [*generators, torch.default_generator]
        before = [generator.get_state() for generator in sources]
        with _Notes() as notes:
            step()
        # A recording takes no step, so what this one changed is put back.
        for generator, state in zip(sources, before, strict=True):
            generator.set_state(state)
        for memory, content in notes.before.values():
            memory.copy_(content)
        return lambda: self._again(notes)

    def _again(self, notes: _Notes) -> None:
        self.replayed += 1
        with torch.no_grad():
            for func, args, kwargs, written in notes.taken:
                for held, new in zip(written, _tensors(func(*args, **kwargs)), strict=True):
                    if held.data_ptr() != new.data_ptr():
                        held.copy_(new)


@contextlib.contextmanager
def on_the_cpu() -> Iterator[Tape]:
    """Inside, steps on the CPU are recorded by the tape and replayed."""
    tape = Tape()
    RECORDERS["cpu"] = lambda device: tape
    try:
        yield tape
    finally:
        del RECORDERS["cpu"]
