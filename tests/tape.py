"""What a CUDA graph does, on any device: the operations of a step are noted, with the tensors that
they read and wrote, and done again with the same tensors.

A number that the step read from the host while it was recorded stays that number, and Python that
decides something decided once: a step that must not be replayed ends elsewhere.
"""

from __future__ import annotations

import contextlib

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class _Notes(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.taken, self.before = [], {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.ops.aten._local_scalar_dense.default:
            raise RuntimeError("operation not permitted when stream is capturing: item")
        for tensor in tensors((args, kwargs)):  # BatchNorm does not say that it writes
            memory = tensor.untyped_storage()
            if memory.data_ptr() not in self.before:
                self.before[memory.data_ptr()] = memory, memory.clone()
        written = func(*args, **kwargs)
        self.taken.append((func, args, kwargs, tensors(written)))
        return written


def tensors(tree):
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


class Tape:
    """A recorder (`federation.training.replay`) that counts what it recorded and replayed."""

    def __init__(self):
        self.recorded = self.replayed = 0

    def aside(self):
        return contextlib.nullcontext()

    def record(self, step, generators):
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
        return lambda: self._again(notes.taken)

    def _again(self, taken):
        self.replayed += 1
        with torch.no_grad():
            for func, args, kwargs, written in taken:
                for held, new in zip(written, tensors(func(*args, **kwargs)), strict=True):
                    if held.data_ptr() != new.data_ptr():
                        held.copy_(new)
