"""Training steps as CUDA graphs, and several trainings beside each other.

A step of a small network is hundreds of launches, each of which takes a GPU less time than the CPU
that asks for it: what a step launches is recorded once, and from then on launched as one. Networks
that leave a GPU idle one at a time share it by turns, a step of each: on CUDA what one launches
runs beside what others do. Each takes the steps that it would take alone, so results are the same
to the last bit. It pays where steps are launched faster than they run, as graphs.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import gc
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from fedtables.federation.execution import Execution

Step = Callable[..., None]
"""Takes a batch's tensors. Whatever else varies from step to step it reads from tensors or draws
from generators, and what it computes it leaves in tensors that were there before: a replay runs no
Python. It never waits for the device.
"""

DROPOUT = nn.modules.dropout._DropoutNd
"""What all layers derive from that drop."""
WARM_UP = 3
"""Steps before the recording, in which libraries choose kernels and allocate what they keep."""


class CudaGraphs:
    """The recorder of a CUDA device."""

    def __init__(self, device: torch.device):
        self._device = device

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Inside, steps are taken that warm up for the recording: on its stream. Where the present
        one is not the default one, on that, for what other graphs do beside this one must not use
        the same workspaces of libraries.
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
        """Does again as `step`, which is not taken; it draws from `generators` and the device's."""
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
    """No garbage is collected inside: an old graph's end is not to be recorded."""
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


RECORDERS: dict[str, Callable[[torch.device], CudaGraphs | Tape]] = {"cuda": CudaGraphs}
"""By type of device; on others a step runs as it is."""


class Replayed:
    """A step for batches of one shape: the first few times as it is, then recorded and replayed;
    always as it is without a recorder.

    Raises RuntimeError, as CUDA does, for a step that waits for the device.
    """

    def __init__(
        self, step: Step, generators: Sequence[torch.Generator], recorder: CudaGraphs | Tape | None
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
    """Have an optimiser that has taken no step read its learning rate from `rate` ()."""
    for group in optimizer.param_groups:
        group["lr"] = rate
        if rate.device.type != "cpu":
            group["capturable"] = True
            group["foreach"] = not group.get("fused")


class _Notes(TorchDispatchMode):
    """Operations inside, with the tensors of each, and the memory they touch as it was before."""

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
    """What a CUDA graph does, on any device: the operations of a step are noted, and done again
    with the same tensors; how often is counted.

    A number that the step read from the host while it was recorded stays that number, and Python
    that decides something decided once: a step that must not be replayed ends elsewhere.
    """

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


def side_by_side(execution: Execution, model: nn.Module) -> bool:
    """Whether several clients with such a network take turns. Not where layers of it drop: they
    would draw from one generator. Whatever else draws in a forward pass is not noticed.
    """
    drops = any(isinstance(module, DROPOUT) and module.p > 0 for module in model.modules())
    return execution.stacked > 1 and not drops


def take_turns(trainings: Sequence[Generator[object]], device: torch.device) -> None:
    """Advance each in turn until all have ended, or one raises, which ends all. Each has context
    variables of its own, and on CUDA a stream of its own, where it is to end by waiting for its
    last step.
    """
    lanes = [_lane(device, number) for number in range(len(trainings))]
    usual = _current(device)
    contexts = [contextvars.copy_context() for _ in trainings]
    for lane in lanes:
        _wait(lane, usual)
    every = list(zip(trainings, contexts, lanes, strict=True))
    going, end = every, object()
    try:
        while going:
            still = []
            for training, context, lane in going:
                with _on(lane):
                    if context.run(next, training, end) is not end:
                        still.append((training, context, lane))
            going = still
    finally:
        for training, context, lane in every:
            with _on(lane):
                context.run(training.close)
            _wait(usual, lane)


@functools.cache
def _lane(device: torch.device, number: int) -> torch.cuda.Stream | None:
    """The same ones in the whole process: memory is kept for every stream that was used."""
    return torch.cuda.Stream(device) if device.type == "cuda" else None


def _current(device: torch.device) -> torch.cuda.Stream | None:
    return torch.cuda.current_stream(device) if device.type == "cuda" else None


def _on(lane: torch.cuda.Stream | None) -> contextlib.AbstractContextManager[object]:
    return contextlib.nullcontext() if lane is None else torch.cuda.stream(lane)


def _wait(later: torch.cuda.Stream | None, earlier: torch.cuda.Stream | None) -> None:
    if later is not None and earlier is not None:
        later.wait_stream(earlier)
