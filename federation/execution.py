"""How the loops run on a machine: the same algorithm faster or slower, with results that differ by rounding."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch

PRECISIONS = ("fp32", "tf32", "bf16")
COMPILE = ("off", "default", "reduce-overhead")

Forward = Callable[[Callable[[torch.Tensor], torch.Tensor], torch.Tensor], torch.Tensor]
"""Takes a network and its inputs (n, c, h, w); returns outputs (n, ...) in float32."""


@dataclass(frozen=True)
class Execution:
    """How training runs; evaluation and teachers' outputs are always eager, in fp32 (or tf32).

    Raises ValueError for a value that does not exist.
    """

    precision: str = "fp32"
    """`fp32`; `tf32`: on CUDA, products of fp32 matrices in TF32; `bf16`: forward and backward pass under autocast."""
    compile: str = "off"
    """`off`, or the mode of torch.compile: `default`, or `reduce-overhead`, which uses CUDA graphs."""
    stacked: int = 1
    """Clients whose local training of a round runs as one vectorised computation."""

    def __post_init__(self) -> None:
        for name, known in (("precision", PRECISIONS), ("compile", COMPILE)):
            if getattr(self, name) not in known:
                raise ValueError(f"unknown {name} {getattr(self, name)!r}; known: {', '.join(known)}")
        if self.stacked < 1:
            raise ValueError(f"stacked must be at least 1, not {self.stacked}")

    @property
    def label(self) -> str:
        """What differs from the default, for file names and tables: `bf16-compiled-stacked8`; empty for nothing."""
        parts = {
            self.precision: self.precision != "fp32",
            "compiled" if self.compile == "default" else self.compile: self.compile != "off",
            f"stacked{self.stacked}": self.stacked > 1,
        }
        return "-".join(name for name, differs in parts.items() if differs)

    def to_json(self) -> dict[str, str | int]:
        return asdict(self)

    def forward(self, device: torch.device, full_batch: bool = True) -> Forward:
        """The forward pass of a training step. What is no full batch runs eagerly, or every size would be compiled."""
        autocast = device.type if self.precision == "bf16" else ""
        if self.compile == "off" or not full_batch:
            return functools.partial(_forward, autocast)
        return functools.partial(_compiled(self.compile), autocast)

    def prepare(self) -> None:
        """Set what is a property of the process. Raises ValueError where there is no compiler for torch.compile."""
        torch.set_float32_matmul_precision("high" if self.precision == "tf32" else "highest")
        torch.backends.cudnn.allow_tf32 = self.precision == "tf32"
        if self.compile != "off" and not any(shutil.which(name) for name in ("g++", "clang++", "c++")):
            raise ValueError("torch.compile needs a C++ compiler (g++ or clang++) on the path; install one or leave compile off")


def _forward(autocast: str, model: Callable[[torch.Tensor], torch.Tensor], inputs: torch.Tensor) -> torch.Tensor:
    with torch.autocast(autocast or "cpu", torch.bfloat16, enabled=bool(autocast)):
        return model(inputs).float()


@functools.cache
def _compiled(mode: str) -> Callable[..., torch.Tensor]:
    """One compiled function for the whole process: networks of the same shape, of whatever client or cell, share its code."""
    torch._dynamo.config.recompile_limit = 64  # shapes in one process: networks x batch sizes; past it dynamo goes eager
    return torch.compile(_forward, mode=None if mode == "default" else mode, dynamic=False)
