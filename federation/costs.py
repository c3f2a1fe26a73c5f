"""Counting work instead of doing it: `plan` runs a method on the `meta` device under an active
meter.

Training and prediction loops see the meter, book what they would have done, and return at once. So
a plan follows the same code path as the run that it plans.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.utils._python_dispatch import _disable_current_modes

BACKWARD = 2
"""A backward pass costs about twice a forward pass."""


class Meter:
    """Work that a run would do."""

    def __init__(self) -> None:
        self.scope = ""
        """Identity of the cell being planned; stands in for the content of tensors that have
        none."""
        self.times = 1
        """How often what is booked now would be done: a loop of like steps is followed once (see
        `Federation.steps`)."""
        self.flops = 0
        self.training_samples = 0
        self.predicted_samples = 0
        self.peak_bytes = 0
        self._names: WeakKeyDictionary[nn.Module, tuple[str, ...]] = WeakKeyDictionary()
        self._known: dict[tuple[str, ...], tuple[int, int, torch.Size]] = {}

    def _per_sample(self, model: nn.Module, shape: tuple[int, ...]) -> tuple[int, int, torch.Size]:
        """Forward FLOPs, bytes of activations and the output's shape for one sample of `shape`;
        computed once.
        """
        if model not in self._names:
            self._names[model] = (repr(model), *(str(tuple(p.shape)) for p in model.parameters()))
        key = (*self._names[model], str(shape))
        if key not in self._known:
            from torch.utils.flop_counter import (
                FlopCounterMode,
            )  # takes a tenth of a second, which runs need not spend

            activations = 0

            def count(module: nn.Module, inputs: object, output: object) -> None:
                nonlocal activations
                if isinstance(output, torch.Tensor) and not list(module.children()):
                    activations += output.numel() * output.element_size()

            hooks = [module.register_forward_hook(count) for module in model.modules()]
            was_training = model.training
            model.eval()
            # An enclosing counter (see `repeated`) must not count this one measurement.
            with (
                _disable_current_modes(),
                FlopCounterMode(display=False) as counter,
                torch.no_grad(),
            ):
                outputs = model(torch.empty(1, *shape, device="meta"))
            model.train(was_training)
            for hook in hooks:
                hook.remove()
            self._known[key] = (counter.get_total_flops(), activations, outputs.shape[1:])
        return self._known[key]

    @contextlib.contextmanager
    def repeated(self, times: int, counted: bool) -> Iterator[None]:
        """Book what happens inside `times` times; with `counted` also its tensor operations, which
        no loop here books.
        """
        self.times *= times
        saved = 0

        def keep(tensor: torch.Tensor) -> torch.Tensor:
            nonlocal saved
            saved += tensor.numel() * tensor.element_size()
            return tensor

        try:
            if counted:
                from torch.utils.flop_counter import FlopCounterMode

                with (
                    FlopCounterMode(display=False) as counter,
                    torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
                ):
                    yield
                self.flops += counter.get_total_flops() * self.times
                self.peak_bytes = max(self.peak_bytes, saved)
            else:
                yield
        finally:
            self.times //= times

    def book_training(
        self, model: nn.Module, images: torch.Tensor, epochs: int, batch_size: int
    ) -> None:
        flops, activations, _ = self._per_sample(model, tuple(images.shape[1:]))
        self.flops += (1 + BACKWARD) * flops * len(images) * epochs * self.times
        self.training_samples += len(images) * epochs * self.times
        weights = sum(p.numel() * p.element_size() for p in model.parameters())
        # Weights, gradients and two moments of Adam; activations kept for the backward pass.
        self.peak_bytes = max(
            self.peak_bytes,
            4 * weights + activations * min(batch_size, len(images)) + images.numel(),
        )

    def book_prediction(self, model: nn.Module, images: torch.Tensor) -> torch.Tensor:
        """Book the pass; returns outputs of the right shape, without content."""
        flops, _, outputs = self._per_sample(model, tuple(images.shape[1:]))
        self.flops += flops * len(images) * self.times
        self.predicted_samples += len(images) * self.times
        return torch.empty(len(images), *outputs, device="meta")


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
    size: int = 250,
) -> list[torch.Tensor]:
    """`function` of `images` (n, ...) in parts of `size`, each of which takes a pass through
    `model` and one back.

    While planning these passes are booked, and what `function` gives has a shape only.
    """
    meter = active_meter()
    if meter is None:
        return [function(part) for part in images.split(size)]
    meter.book_training(model, images, 1, size)
    with _disable_current_modes():
        return [function(images)]


@contextlib.contextmanager
def metering(meter: Meter) -> Iterator[Meter]:
    """Book all training and prediction inside on `meter`."""
    token = _active.set(meter)
    try:
        yield meter
    finally:
        _active.reset(token)
