"""Several trainings in turn, a step of each: on CUDA what one launches runs beside what others do.

Networks that leave a GPU idle one at a time share it so. Each takes the steps that it would take
alone, so results are the same to the last bit. It pays where steps are launched faster than they
run: as CUDA graphs (`federation.graphs.replay`).
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Generator, Sequence

import torch
from torch import nn

from federation.execution import Execution

DROPOUT = (
    nn.Dropout,
    nn.Dropout1d,
    nn.Dropout2d,
    nn.Dropout3d,
    nn.AlphaDropout,
    nn.FeatureAlphaDropout,
)


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
