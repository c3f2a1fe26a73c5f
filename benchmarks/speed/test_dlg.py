"""Speed of DLG: iterations (steps of L-BFGS, each of 20 evaluations) per second on the paper's network and image size."""

from __future__ import annotations

import pytest
import torch

from models.catalogue import build
from privacy.attacks.dlg import dlg, gradients

CHANNELS, SIDE, CLASSES = 3, 32, 100
ITERATIONS = 10


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_iterations_of_dlg(benchmark, dtype):
    torch.manual_seed(0)
    model = build("lenet-sigmoid", CHANNELS, CLASSES, SIDE).to(dtype)
    image = torch.rand(1, CHANNELS, SIDE, SIDE, dtype=torch.float64).to(dtype)
    shared = gradients(model, image, torch.eye(CLASSES, dtype=dtype)[:1])

    def attack():
        start = torch.Generator().manual_seed(4)  # from here, both dtypes descend steadily
        return dlg(model, shared, (CHANNELS, SIDE, SIDE), CLASSES, iterations=ITERATIONS, generator=start)

    found = benchmark.pedantic(attack, warmup_rounds=1, rounds=5)
    benchmark.extra_info["iterations"] = len(found.distances)
    if benchmark.stats:
        benchmark.extra_info["iterations_per_second"] = len(found.distances) / benchmark.stats.stats.min
