"""The forward pass of a training step."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from federation.execution import Execution

Forward = Callable[[Callable[[torch.Tensor], torch.Tensor], torch.Tensor], torch.Tensor]
"""Takes a network and its inputs (n, c, h, w); returns outputs (n, ...) in float32."""


def forward_pass(execution: Execution, device: torch.device, full_batch: bool = True) -> Forward:
    """The forward pass of a training step. What is no full batch runs eagerly, or every size would
    be compiled.
    """
    autocast = device.type if execution.precision == "bf16" else ""
    if not (execution.compiled and full_batch):
        return functools.partial(_forward, autocast)
    return functools.partial(_compiled(execution.compile), autocast)


def _forward(
    autocast: str, model: Callable[[torch.Tensor], torch.Tensor], inputs: torch.Tensor
) -> torch.Tensor:
    lone = LoneBatchNorm() if len(inputs) == 1 else contextlib.nullcontext()
    with lone, torch.autocast(autocast or "cpu", torch.bfloat16, enabled=bool(autocast)):
        return model(inputs).float()


@functools.cache
def _compiled(mode: str) -> Callable[..., torch.Tensor]:
    """One compiled function for the whole process: networks of the same shape, of whatever client
    or cell, share its code.
    """
    # Shapes in one process are networks x batch sizes. Past the limit dynamo would go eager
    # silently, and numbers would depend on what a worker ran before; so it fails.
    torch._dynamo.config.recompile_limit = 64
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    torch._functorch.config.donated_buffer = False  # FedIOD goes through the student's graph twice
    return torch.compile(_forward, mode=None if mode == "default" else mode, dynamic=False)


class LoneBatchNorm(TorchFunctionMode):
    """BatchNorm of a single value per channel, which has no variance: it takes the running
    statistics, and leaves them as they are.

    So a client with one sample trains where the last map is 1 x 1; torch raises ValueError there.
    """

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if function is F.batch_norm and args[0].numel() == args[0].shape[1]:
            kwargs = {**(kwargs or {}), "training": False}
        return function(*args, **(kwargs or {}))
