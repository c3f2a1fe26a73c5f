"""What a computation finds around it in its process, beside its arguments: flags of PyTorch,
generators that everybody draws from, environment variables. A number must not hang on who ran
before, so that a cell leaves them as it found them, and a stage is computed under its run's own
flags, whatever the method has set meanwhile.
"""

import contextlib
import os
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch

Flag = tuple[Callable[[], Any], Callable[[Any], object]]
"""A setting of the process, or of the thread: what reads and what sets it."""


def _attribute(owner: Any, name: str) -> Flag:
    return lambda: getattr(owner, name), lambda value: setattr(owner, name, value)


def _autocast(device: str) -> Flag:
    def put(value: tuple[bool, torch.dtype]) -> None:
        torch.set_autocast_enabled(device, value[0])
        torch.set_autocast_dtype(device, value[1])

    return lambda: (torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)), put


_CUDA = torch.backends.cuda
_CUDNN, _MATMUL, _MKLDNN = torch.backends.cudnn, _CUDA.matmul, torch.backends.mkldnn
FLAGS: Mapping[str, Flag] = {
    "default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "default device": (
        torch.get_default_device,
        lambda device: torch.set_default_device(None if device.type == "cpu" else device),
    ),
    "number of threads": (torch.get_num_threads, torch.set_num_threads),
    "gradients": (torch.is_grad_enabled, torch.set_grad_enabled),
    "denormal numbers": (lambda: sys.float_info.min / 2 == 0, torch.set_flush_denormal),
    "deterministic algorithms": (
        torch.get_deterministic_debug_mode,
        lambda mode: torch.use_deterministic_algorithms(mode > 0, warn_only=mode == 1),
    ),
    "fill uninitialized memory": _attribute(torch.utils.deterministic, "fill_uninitialized_memory"),
    **{
        f"cudnn.{name}": _attribute(_CUDNN, name)
        for name in ("enabled", "benchmark", "deterministic")
    },
    "mkldnn.enabled": _attribute(_MKLDNN, "enabled"),
    "autocast on the CPU": _autocast("cpu"),
    "autocast on CUDA": _autocast("cuda"),
    **{
        f"{kernel} attention": (
            getattr(_CUDA, f"{kernel}_sdp_enabled"),
            getattr(_CUDA, f"enable_{kernel}_sdp"),
        )
        for kernel in ("flash", "mem_efficient", "math", "cudnn")
    },
    # By the older names first: by these, PyTorch sets those below too.
    "precision of products": (
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
    ),
    "cudnn.allow_tf32": _attribute(_CUDNN, "allow_tf32"),
    "fp16 sums": _attribute(_MATMUL, "allow_fp16_reduced_precision_reduction"),
    "bf16 sums": _attribute(_MATMUL, "allow_bf16_reduced_precision_reduction"),
    **{
        f"{name} precision": _attribute(owner, "fp32_precision")
        for name, owner in {
            "backends": torch.backends,
            "cuda.matmul": _MATMUL,
            "cudnn": _CUDNN,
            "cudnn.conv": _CUDNN.conv,  # type: ignore[attr-defined]
            "cudnn.rnn": _CUDNN.rnn,
            "mkldnn": _MKLDNN,
            "mkldnn.matmul": _MKLDNN.matmul,  # type: ignore[attr-defined]
            "mkldnn.conv": _MKLDNN.conv,  # type: ignore[attr-defined]
            "mkldnn.rnn": _MKLDNN.rnn,  # type: ignore[attr-defined]
        }.items()
    },
}
"""By name, in the order in which they are put back."""
MIXED = "set in two ways"
"""In place of a value that PyTorch does not tell, since its older and newer names disagree."""


def flags() -> dict[str, Any]:
    """The values of all flags, as they are now."""
    return {name: _value(name) for name in FLAGS}


def _value(name: str) -> Any:
    try:
        return FLAGS[name][0]()
    except RuntimeError:
        return MIXED


def put_flags(values: Mapping[str, Any]) -> None:
    """Set those flags that are not as `values` has them."""
    for name, value in values.items():
        if value != MIXED and _value(name) != value:
            FLAGS[name][1](value)


_of_run: ContextVar[Mapping[str, Any] | None] = ContextVar("flags", default=None)


@contextlib.contextmanager
def as_now() -> Iterator[None]:
    """A run goes on inside: its stages are computed under the flags as they are now."""
    token = _of_run.set(flags())
    try:
        yield
    finally:
        _of_run.reset(token)


@contextlib.contextmanager
def flags_of_run() -> Iterator[None]:
    """Inside, flags are at first those of the run that goes on; afterwards they are as before."""
    before = flags()
    put_flags(_of_run.get() or {})
    try:
        yield
    finally:
        put_flags(before)


@contextlib.contextmanager
def put_back() -> Iterator[None]:
    """Afterwards flags, generators that everybody draws from, environment variables, and what NumPy
    and Python warn of are as before.
    """
    before, environment, restore = flags(), dict(os.environ), _generators()
    try:
        with warnings.catch_warnings(), np.errstate():
            yield
    finally:
        put_flags(before)
        restore()
        for name in os.environ.keys() - environment.keys():
            del os.environ[name]
        os.environ.update(environment)


def _generators() -> Callable[[], None]:
    """A function that sets the generators of Python, NumPy and PyTorch back to where they are."""
    of_python, of_numpy, of_torch = random.getstate(), np.random.get_state(), torch.get_rng_state()
    started = torch.cuda.is_initialized()
    of_cuda = torch.cuda.get_rng_state_all() if started else []

    def restore() -> None:
        random.setstate(of_python)
        np.random.set_state(of_numpy)
        torch.set_rng_state(of_torch)
        if torch.cuda.is_initialized():
            with contextlib.suppress(RuntimeError):  # after some errors a device does nothing more
                if started:
                    torch.cuda.set_rng_state_all(of_cuda)
                else:  # as they are when a process begins
                    torch.cuda.manual_seed_all(torch.initial_seed())

    return restore
