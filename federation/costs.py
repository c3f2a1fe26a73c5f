"""Counting work instead of doing it: `plan` runs a method on the `meta` device under a meter.

Training and prediction loops see the meter, book what they would have done, and return at once. So
a plan follows the same code path as the run that it plans.
"""

from __future__ import annotations

import contextlib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from fedtables.federation.memory import Answers, Memory, Saved

BACKWARD = 2
"""A backward pass costs about twice a forward pass."""


@dataclass(frozen=True, order=True)
class Workload:
    """A network's training, as far as its speed goes."""

    network: str
    image_shape: tuple[int, ...]
    outputs: int
    batch_size: int


@dataclass(frozen=True)
class Work:
    """An amount of work."""

    flops: int = 0
    training_samples: int = 0
    predicted_samples: int = 0
    client_flops: int = 0
    """Of `flops`, those on clients."""
    look_flops: int = 0
    """Of `flops`, those of looks at a run, which are no party's."""
    replayable_flops: int = 0
    """Of `flops`, those of training steps that CUDA graphs can hold."""
    shares: tuple[tuple[Workload, bool, int], ...] = ()
    """Networks of the catalogue that train, whether CUDA graphs hold the steps, and their FLOPs."""

    def __add__(self, other: Work) -> Work:
        sums: Counter[tuple[Workload, bool]] = Counter()
        for load, replayable, flops in (*self.shares, *other.shares):
            sums[load, replayable] += flops
        shares = tuple((*key, flops) for key, flops in sorted(sums.items()))
        amounts: dict[str, Any] = {n: getattr(self, n) + getattr(other, n) for n in AMOUNTS}
        return Work(**amounts, shares=shares)

    def __mul__(self, times: int) -> Work:
        amounts: dict[str, Any] = {name: getattr(self, name) * times for name in AMOUNTS}
        shares = tuple((load, way, flops * times) for load, way, flops in self.shares)
        return Work(**amounts, shares=shares)


AMOUNTS = tuple(field.name for field in fields(Work) if field.name != "shares")
"""The fields of work that are numbers."""


@dataclass(frozen=True)
class SampleCost:
    """What one sample costs in a network."""

    flops: int
    """Of a forward pass."""
    activations: int
    """Bytes."""
    outputs: torch.Size
    """Shape."""
    weights: int
    """Bytes of the network's parameters."""


class FlopCounter(TorchDispatchMode):
    """Sums FLOPs as PyTorch's `FlopCounterMode`, and among them those on clients."""

    def __init__(self) -> None:
        # Takes a tenth of a second, which runs need not spend.
        from torch.utils.flop_counter import flop_registry

        super().__init__()
        self.flops = self.client_flops = 0
        self._formulas = flop_registry

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        formula = self._formulas.get(func._overloadpacket)
        if formula is not None:
            flops = formula(*args, **(kwargs or {}), out_val=result)
            self.flops += flops
            self.client_flops += 0 if client_here() is None else flops
        return result


class Meter:
    """Work that a run would do."""

    def __init__(self) -> None:
        self.scope = ""
        """Identity of the cell being planned, in place of the content that tensors lack."""
        self.kind = ""
        """What the cost of a step depends on, beside what it does: equal for fits of one method
        with the same settings, networks, tasks and clients."""
        self.steps: dict[tuple[str, str], Any] = {}
        """Work, peak bytes, memory and messages of a followed step, by kind and name."""
        self.times = 1
        """How often what is booked now would be done: like steps are followed once."""
        self.looks = False
        """Whether what is booked now is done to look at a run."""
        self.work = Work()
        """What has been booked so far."""
        self.peak_bytes = 0
        """Of training, for a table's measure: all that a step keeps for its passes back, whether at
        one time or not."""
        self.memory = Memory()
        """What is held at one time, at most, beside `held`."""
        self.answers = Answers()
        self.held: frozenset[int] = frozenset()
        """Memory of samples that is there all the while (their storages); none for one client's."""
        self.on_host = False
        """Whether samples, and copies of them, are in host memory."""
        self._counter: FlopCounter | None = None
        self._shared: Counter[Workload] = Counter()
        """FLOPs of the step that is being followed, passes back included, by network."""
        self._structures: WeakKeyDictionary[nn.Module, tuple[object, ...]] = WeakKeyDictionary()
        self._known: dict[tuple[object, ...], SampleCost] = {}

    def _structure(self, model: nn.Module) -> tuple[object, ...]:
        """What tells networks of different cost apart: their modules and parameters by name."""
        if model not in self._structures:
            self._structures[model] = (
                type(model),
                model.extra_repr(),
                *((name, tuple(p.shape)) for name, p in model.named_parameters(recurse=False)),
                *((name, self._structure(child)) for name, child in model.named_children()),
            )
        return self._structures[model]

    def _per_sample(self, model: nn.Module, shape: tuple[int, ...]) -> SampleCost:
        """The cost of one sample of `shape`; computed once."""
        key = (*self._structure(model), shape)
        if key not in self._known:
            activations = 0

            def count(module: nn.Module, inputs: object, output: object) -> None:
                nonlocal activations
                if isinstance(output, torch.Tensor) and not list(module.children()):
                    activations += output.numel() * output.element_size()

            hooks = [module.register_forward_hook(count) for module in model.modules()]
            was_training = model.training
            model.eval()
            # An enclosing counter (see `counted`) must not count this one measurement.
            with _disable_current_modes(), FlopCounter() as counter, torch.no_grad():
                outputs = model(torch.empty(1, *shape, device="meta"))
            model.train(was_training)
            for hook in hooks:
                hook.remove()
            weights = sum(p.numel() * p.element_size() for p in model.parameters())
            self._known[key] = SampleCost(counter.flops, activations, outputs.shape[1:], weights)
        return self._known[key]

    @contextlib.contextmanager
    def having(self, **attributes: Any) -> Iterator[None]:
        """Inside, the meter has these attributes."""
        before = {name: getattr(self, name) for name in attributes}
        self.__dict__.update(attributes)
        try:
            yield
        finally:
            self.__dict__.update(before)

    def repeated(self, times: int) -> contextlib.AbstractContextManager[None]:
        """Book what happens inside `times` times."""
        return self.having(times=self.times * times)

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Book tensor operations inside, which no loop here books: those of a step. Of memory it
        knows what is kept for passes back, not gradients and moments of optimisers.
        """
        saved = Saved()
        outer, outer_shared = self._counter, self._shared
        self._shared = Counter()
        try:
            with (
                FlopCounter() as self._counter,
                torch.autograd.graph.saved_tensors_hooks(saved.keep, lambda kept: kept.tensor),
            ):
                counter = self._counter
                yield
            known = max(counter.flops, self._shared.total())  # at most all of it is shared out
            shares = tuple(
                (load, False, flops * counter.flops // known)
                for load, flops in self._shared.items()
                if flops
            )
            done = Work(counter.flops, client_flops=counter.client_flops, shares=shares)
            self.book(done, saved.total, 1)
            self.need(Memory(saved.most))
            if outer is not None:  # which has counted them too
                outer.flops -= counter.flops
                outer.client_flops -= counter.client_flops
        finally:
            self._counter, self._shared = outer, outer_shared

    @contextlib.contextmanager
    def passing(self, model: object, inputs: torch.Tensor) -> Iterator[None]:
        """Inside `counted`: what is done inside is a forward pass of `model`, a network or a part
        of one, in a training step on `inputs` (n, ...).
        """
        counter = self._counter
        load = None if counter is None else _workload(model, len(inputs))
        if counter is None or load is None:
            yield
            return
        before, passes = counter.flops, 1
        yield
        if torch.is_grad_enabled():  # a network that learns nothing passes gradients on at most
            passes += BACKWARD if learns(model) else int(inputs.requires_grad)
        self._shared[load] += (counter.flops - before) * passes

    def book(self, work: Work, peak_bytes: int, times: int) -> None:
        """Book `work`, done `times` times, which needs `peak_bytes` of memory."""
        self.work += work * (times * self.times)
        self.peak_bytes = max(self.peak_bytes, peak_bytes)

    def need(self, memory: Memory) -> None:
        """Book memory that is needed for a time, beside the answers that are kept."""
        self.memory |= memory + self.answers.now

    def as_samples(self, size: int) -> Memory:
        """So many bytes where samples lie."""
        return Memory(0, size) if self.on_host else Memory(size)

    def _copied(self, samples: torch.Tensor) -> int:
        """Bytes of samples that are not counted yet: neither held nor kept where samples lie."""
        held = samples.untyped_storage()._cdata in self.held
        kept = self.answers.of(samples) == self.as_samples(samples.nbytes)
        return 0 if held or kept else samples.nbytes

    def keep(self, answers: torch.Tensor, memory: Memory | None = None) -> torch.Tensor:
        """Book what answers take while they are kept: `memory`, else all of it on the device."""
        self.answers.keep(answers, Memory(answers.nbytes) if memory is None else memory)
        self.need(Memory())
        return answers

    def _book_passes(self, flops: int, peak_bytes: int, **others: Any) -> None:
        """Book passes of a network here, or as a look; `others` are further fields of `Work`."""
        of_clients = 0 if client_here() is None or self.looks else flops
        of_looks = flops if self.looks else 0
        work = Work(flops, client_flops=of_clients, look_flops=of_looks, **others)
        self.book(work, peak_bytes, 1)

    def book_training(
        self,
        model: nn.Module,
        images: torch.Tensor,
        epochs: float,
        batch_size: int,
        *,
        targets: torch.Tensor | None = None,
        replayable: bool = False,
        further: int = 0,
    ) -> None:
        """Book passes over `images` (of drawn samples the mean); `replayable` for CUDA graphs.

        Memory is that of copies of images and `targets` too. `further` forward passes of the same
        network are taken of each batch without gradients.
        """
        one = self._per_sample(model, tuple(images.shape[1:]))
        copied = self._copied(images)
        samples = round(len(images) * epochs)
        flops = (1 + further + BACKWARD) * one.flops * samples
        load = _workload(model, batch_size)
        shares = () if load is None or not flops else ((load, replayable, flops),)
        # Weights, gradients and two moments of Adam; activations kept for the backward pass.
        peak = 4 * one.weights + one.activations * min(batch_size, len(images))
        self._book_passes(
            flops,
            peak + copied,
            training_samples=samples,
            replayable_flops=flops if replayable else 0,
            shares=shares,
        )
        copied += 0 if targets is None else self._copied(targets)
        self.need(Memory(peak) + self.as_samples(copied))

    def book_looks(self, epochs: int, after_epoch: Callable[[int], None] | None) -> None:
        """Book what is done after each of the epochs of a training, which is the same."""
        if after_epoch is not None:
            with self.repeated(epochs):
                after_epoch(1)

    def book_prediction(self, model: nn.Module, images: torch.Tensor) -> torch.Tensor:
        """Book the pass; returns outputs of the right shape, without content."""
        one = self._per_sample(model, tuple(images.shape[1:]))
        self._book_passes(one.flops * len(images), 0, predicted_samples=len(images))
        return torch.empty(len(images), *one.outputs, device="meta")


def _workload(model: object, batch_size: int) -> Workload | None:
    """What a training of `model`, or of a part, is of: the first of the catalogue in it."""
    whole = getattr(model, "__self__", model)  # a half of a network is a method of it
    parts = whole.modules() if isinstance(whole, nn.Module) else ()
    built: Iterator[Any] = (part.built_as for part in parts if hasattr(part, "built_as"))
    network, channels, outputs, sides = next(built, ("", 0, 0, ()))
    return Workload(network, (channels, *sides), outputs, batch_size) if network else None


def learns(model: object) -> bool:
    """Whether a network, or the one that a half is of, has parameters with gradients."""
    whole = getattr(model, "__self__", model)
    return isinstance(whole, nn.Module) and any(p.requires_grad for p in whole.parameters())


_client: ContextVar[int | None] = ContextVar("client", default=None)
TOGETHER = -1
"""In place of a client's index where several are at work side by side."""


def client_here() -> int | None:
    """The client on which something runs now, or `TOGETHER`; None for the server."""
    return _client.get()


@contextlib.contextmanager
def at_client(index: int) -> Iterator[None]:
    """What is done inside is done on client `index`, or on several, `TOGETHER`."""
    token = _client.set(index)
    try:
        yield
    finally:
        _client.reset(token)


_active: ContextVar[Meter | None] = ContextVar("meter", default=None)


def active_meter() -> Meter | None:
    """The meter to book work on, or None when the work is to be done."""
    return _active.get()


def values(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor` on the CPU, to decide by; while planning, when it has no content, zeros."""
    return torch.zeros_like(tensor, device="cpu") if tensor.is_meta else tensor.cpu()


def selected(samples: torch.Tensor, choose: Callable[[], torch.Tensor]) -> torch.Tensor:
    """Indices (m,) into `samples` (n, ...) that `choose` takes from content; while planning, when
    there is none, all of them: the most that it can cost.
    """
    return torch.arange(len(samples), device="meta") if samples.is_meta else choose()


def differentiated(
    function: Callable[[torch.Tensor], torch.Tensor],
    model: nn.Module,
    images: torch.Tensor,
    shape: tuple[int, ...],
    size: int = 250,
) -> list[torch.Tensor]:
    """`function` of `images` (n, ...) in parts of `size`, each of which takes a pass through
    `model` and one back; float32 of `shape` for each image.

    While planning these passes are booked, and nothing is computed.
    """
    meter = active_meter()
    if meter is None:
        return [function(part) for part in images.split(size)]
    meter.book_training(model, images, 1, min(size, len(images)))
    return [torch.empty((len(images), *shape), device="meta")]


@contextlib.contextmanager
def metering(meter: Meter) -> Iterator[Meter]:
    """Book all training and prediction inside on `meter`."""
    token = _active.set(meter)
    try:
        with warnings.catch_warnings():
            # The optimiser of a step that is not followed again has taken none.
            warnings.filterwarnings("ignore", message="Detected call of `lr_scheduler.step")
            yield meter
    finally:
        _active.reset(token)
