"""FedAvg's round throughput in the suite against a bare PyTorch loop that takes the same steps.

In fp32 both end with the same weights, which is checked first. Images are random.
"""

from __future__ import annotations

import pytest
import torch

from benchmarks.speed.pairs import compare
from benchmarks.speed.rounds import Simulation, distance
from federation.training.inputs import Normalisation


def simulation_of(clients: int, samples: int, share: float, batch_size: int) -> Simulation:
    generator = torch.Generator().manual_seed(0)
    shape = (clients, samples, 3, 32, 32)
    images = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
    labels = torch.randint(0, 10, shape[:2], generator=generator)
    normalise = Normalisation((0.5,) * 3, (0.25,) * 3)
    return Simulation(images, labels, normalise, batch_size, rounds=2, share=share)


@pytest.mark.parametrize(
    ("clients", "samples", "share"),
    [(20, 128, 1.0), (1000, 50, 0.05)],
    ids=["20 clients", "1000 clients"],
)
@pytest.mark.parametrize("batch_size", [16, 64])
def test_rounds(benchmark, clients, samples, share, batch_size):
    simulation = simulation_of(clients, samples, share, batch_size)
    ours, bare = simulation.suite().parameters, simulation.bare().parameters
    assert distance(ours, bare, simulation.initial().state_dict()) < 0.01
    ways = {
        "bare loop": lambda: simulation.bare().round_seconds,
        "suite": lambda: simulation.suite().round_seconds,
    }
    compare(benchmark, ways, simulation.trained)
