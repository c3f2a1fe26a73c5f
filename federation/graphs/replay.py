"""Training steps as CUDA graphs: what a step launches is recorded once, and from then on launched
as one.

A step of a small network is hundreds of launches, each of which takes a GPU less time than the CPU
that asks for it.
"""

from __future__ import annotations

import contextlib
import functools
import gc
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import torch

Step = Callable[..., None]
"""Takes a batch's tensors. Whatever else varies from step to step it reads from tensors or draws
from generators, and what it computes it leaves in tensors that were there before: a replay runs no
Python. It never waits for the device.
"""

WARM_UP = 3
"""Steps before the recording, in which libraries choose kernels and allocate what they keep."""


class Recorder(Protocol):
    """How the steps of one training are recorded on a device."""

    def aside(self) -> contextlib.AbstractContextManager[None]:
        """Inside, steps are taken that warm up for the recording."""

    def record(
        self, step: Callable[[], None], generators: Sequence[torch.Generator]
    ) -> Callable[[], None]:
        """What does again as `step` would, which is not taken; `generators` are what it draws
        from, beside the device's own.
        """


class CudaGraphs:
    """The recorder of a CUDA device."""

    def __init__(self, device: torch.device):
        self._device = device

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """On the stream of recordings; where the present one is not the default one, on that, for
        what other graphs do beside this one must not use the same workspaces of libraries.
        """
        with torch.cuda.device(self._device):
            usual = torch.cuda.current_stream()
            if usual != torch.cuda.default_stream():
                yield
                return
            stream = _side_stream(self._device)
            stream.wait_stream(usual)
            with torch.cuda.stream(stream):
                yield
            usual.wait_stream(stream)

    def record(
        self, step: Callable[[], None], generators: Sequence[torch.Generator]
    ) -> Callable[[], None]:
        graph = torch.cuda.CUDAGraph()
        for generator in generators:  # newer versions of torch find them by themselves
            graph.register_generator_state(generator)
        with self.aside(), _uncollected():
            self._make_room()
            graph.capture_begin()
            try:
                step()
            finally:
                graph.capture_end()

        def replay() -> None:
            with torch.cuda.device(self._device):
                graph.replay()

        return replay

    def _make_room(self) -> None:
        """While it records, the allocator cannot give back what it keeps. `torch.cuda.graph` has it
        do so before each recording, which takes longer than the recording of a small step.
        """
        kept = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
        free, _ = torch.cuda.mem_get_info()
        if kept > free:
            torch.cuda.empty_cache()


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """No garbage is collected inside, among which an old graph might be, whose end is not to be
    recorded.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@functools.cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    """One for the whole process: libraries keep memory for every stream that they have seen."""
    return torch.cuda.Stream(device)


RECORDERS: dict[str, Callable[[torch.device], Recorder]] = {"cuda": CudaGraphs}
"""By type of device; on others a step runs as it is."""


def recorder_on(device: torch.device) -> Recorder | None:
    """The recorder of one training on a device, if there is any."""
    make = RECORDERS.get(device.type)
    return None if make is None else make(device)


class Replayed:
    """A step for batches of one shape: the first few times as it is, then recorded and replayed;
    always as it is without a recorder.

    Raises RuntimeError, as CUDA does, for a step that waits for the device.
    """

    def __init__(
        self, step: Step, generators: Sequence[torch.Generator], recorder: Recorder | None
    ):
        self._step = step
        self._generators = generators
        self._recorder = recorder
        self._warm = 0
        self._batch: tuple[torch.Tensor, ...] = ()
        self._replay: Callable[[], None] | None = None

    def __call__(self, *batch: torch.Tensor) -> None:
        if self._recorder is None:
            self._step(*batch)
            return
        if self._warm < WARM_UP:
            self._warm += 1
            with self._recorder.aside():
                self._step(*batch)
            return
        if self._replay is None:
            self._batch = tuple(tensor.clone() for tensor in batch)
            self._replay = self._recorder.record(lambda: self._step(*self._batch), self._generators)
        for held, tensor in zip(self._batch, batch, strict=True):
            held.copy_(tensor)
        self._replay()


def read_rate_from(rate: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    """Have an optimiser that has taken no step, with networks on the device of `rate` (), read its
    learning rate there.
    """
    for group in optimizer.param_groups:
        group["lr"] = rate
        if rate.is_cuda:
            group["capturable"] = True
            group["foreach"] = not group.get("fused")
