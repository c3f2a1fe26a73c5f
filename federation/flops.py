"""FLOPs of tensor operations, counted on the `meta` device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

ATEN = torch.ops.aten
LIKE_INPUT = frozenset(
    {ATEN.add, ATEN.sub, ATEN.mul, ATEN.div, ATEN.neg, ATEN.abs, ATEN.sqrt, ATEN.exp, ATEN.log}
    | {ATEN.relu, ATEN.silu, ATEN.sigmoid, ATEN.tanh, ATEN.leaky_relu, ATEN.clamp, ATEN.clamp_min}
    | {ATEN.threshold_backward, ATEN.silu_backward, ATEN.sigmoid_backward, ATEN.tanh_backward}
    | {ATEN.leaky_relu_backward, ATEN.pow}
)
"""Operations on tensors of one shape, and numbers, whose result has that shape."""
FILL = frozenset({ATEN.normal_, ATEN.uniform_, ATEN.fill_, ATEN.zero_, ATEN.copy_})
NORMALISE = frozenset({ATEN._native_batch_norm_legit, ATEN.native_batch_norm})


class ShapesOnly(TorchDispatchMode):
    """Inside, results on the `meta` device that are like an input are made without looking further.

    There PyTorch works out in Python what shape each result has, which takes up to milliseconds.
    """

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = _like_input(func, args)
        return func(*args, **(kwargs or {})) if result is None else result


class FlopCounter(ShapesOnly):
    """Sums the FLOPs of products and convolutions, as PyTorch's `FlopCounterMode`, and among them
    those of clients: while `local` is true.
    """

    def __init__(self, local: Callable[[], bool] = lambda: False) -> None:
        # Takes a tenth of a second, which runs need not spend.
        from torch.utils.flop_counter import flop_registry

        super().__init__()
        self.flops = self.client_flops = 0
        self._formulas = flop_registry
        self._local = local

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = super().__torch_dispatch__(func, types, args, kwargs)
        formula = self._formulas.get(func._overloadpacket)
        if formula is not None:
            flops = formula(*args, **(kwargs or {}), out_val=result)
            self.flops += flops
            self.client_flops += flops if self._local() else 0
        return result


def _like_input(func: Any, args: tuple[Any, ...]) -> Any:
    """The result of an operation where an input tells its shape; else None."""
    first = args[0] if args else None
    if not isinstance(first, torch.Tensor) or not first.is_meta:
        return None
    operation = func._overloadpacket
    if func._schema.name.endswith("_"):
        in_place = torch.Tag.pointwise in func.tags or operation in FILL
        return first if in_place else None
    if operation in LIKE_INPUT:
        others = [argument for argument in args if isinstance(argument, torch.Tensor)]
        alike = all(t.shape == first.shape and t.dtype == first.dtype for t in others)
        return torch.empty_like(first) if alike and first.is_floating_point() else None
    if operation in NORMALISE:
        return (torch.empty_like(first), *(first.new_empty(first.shape[1]) for _ in range(2)))
    if operation is ATEN.native_batch_norm_backward and args[2] is not None and all(args[9]):
        return (torch.empty_like(args[1]), torch.empty_like(args[2]), torch.empty_like(args[2]))
    return None
