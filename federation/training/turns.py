"""Several trainings in turn, a step of each: on CUDA what one launches runs beside what others do.

Networks that leave a GPU idle one at a time share it so. Each takes the steps that it would take
alone, so results are the same to the last bit. That it pays, steps have to be launched faster than
they run: as CUDA graphs (`federation.training.replay`).
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Iterator, Sequence

import torch
from torch import nn
from torch.nn.modules.dropout import _DropoutNd


def draws(model: nn.Module) -> bool:
    """Whether a network draws in a forward pass, as by dropout: from a generator that all share,
    so that its steps must not be beside others.
    """
    return any(isinstance(module, _DropoutNd) and module.p > 0 for module in model.modules())


def take_turns(trainings: Sequence[Iterator[object]], device: torch.device) -> None:
    """Advance each in turn until all have ended. Each has context variables of its own, and on
    CUDA a stream of its own, where it is to end by waiting for its last step.
    """
    lanes = [_lane(device, number) for number in range(len(trainings))]
    usual = _current(device)
    contexts = [contextvars.copy_context() for _ in trainings]
    for lane in lanes:
        _wait(lane, usual)
    going = list(zip(trainings, contexts, lanes, strict=True))
    end = object()
    while going:
        still = []
        for training, context, lane in going:
            with _on(lane):
                if context.run(next, training, end) is not end:
                    still.append((training, context, lane))
        going = still
    for lane in lanes:
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
