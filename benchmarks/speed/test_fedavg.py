"""FedAvg's round throughput in the suite against a bare PyTorch loop that takes the same steps.

In fp32 both end with the same weights, which is checked first.
"""

import pytest

from fedtables.benchmarks.speed.pairs import compare
from fedtables.benchmarks.speed.rounds import cifar10, distance


@pytest.mark.parametrize(
    ("clients", "samples", "share"),
    [(20, 128, 1.0), (1000, 50, 0.05)],
    ids=["20 clients", "1000 clients"],
)
@pytest.mark.parametrize("batch_size", [16, 64])
def test_rounds(benchmark, clients, samples, share, batch_size):
    _, simulation = cifar10(batch_size, clients, samples, share)
    ours, bare = simulation.suite().parameters, simulation.bare().parameters
    assert distance(ours, bare, simulation.initial().state_dict()) < 0.01
    ways = {
        "bare loop": lambda: simulation.bare().round_seconds,
        "suite": lambda: simulation.suite().round_seconds,
    }
    compare(benchmark, ways, simulation.trained)
