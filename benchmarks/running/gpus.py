"""Throughputs of GPUs, for hours that are estimated from FLOPs."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.tables.spec import SpecError
from results.names import near


@dataclass(frozen=True)
class GPU:
    """A GPU, and how fast it trains the networks of these tables."""

    title: str
    speed: float
    """FLOP/s of training in fp32."""
    source: str
    """Where the speed comes from."""


H100 = 11e12
H100_PEAK, A100_PEAK = 67e12, 19.5e12
"""FLOP/s in fp32 of the SXM forms, NVIDIA's data sheets; their memories differ less, 3.35 and 2.04
TB/s."""
GPUS = {
    "h100": GPU(
        "NVIDIA H100 (80 GB)",
        H100,
        "measured: the wide ResNet-8 in batches of 16, the slowest of what was measured there"
        " (docs/performance.md, On CUDA)",
    ),
    "a100": GPU(
        "NVIDIA A100 (80 GB)",
        H100 * A100_PEAK / H100_PEAK,
        "derived, not measured: the H100's by the ratio of both data sheets' peaks in fp32,"
        " 19.5 / 67 TFLOP/s",
    ),
}


def find_gpus(names: str) -> list[GPU]:
    """The GPUs of `h100,a100`. Raises SpecError with near names for an unknown one."""
    for name in names.split(","):
        if name not in GPUS:
            raise SpecError(f"--gpu {name}: its speed is not known; {near(name, GPUS)}")
    return [GPUS[name] for name in dict.fromkeys(names.split(","))]
