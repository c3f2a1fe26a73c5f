"""Speed of methods with rounds, on the contract's small federation of five clients; teachers are
trained beforehand.
"""

import pytest

from fedtables.benchmarks.contract.fits import Fit
from fedtables.federation.shared.averaging import average_states
from fedtables.methods.fedavg import FedAvg
from fedtables.methods.fediod import FedIOD
from fedtables.models.catalogue import build

TEN_STEPS = FedIOD(epochs=1, steps=10, batch_size=64, width=32, discriminator_width=32, samples=0)
ONE_ROUND = FedAvg(rounds=1, participation=1.0)


@pytest.mark.parametrize(
    "method", [TEN_STEPS, ONE_ROUND], ids=["ten steps of FedIOD", "a round of FedAvg"]
)
def test_a_fit(benchmark, method):
    federation = Fit(method, brief=False).federation
    federation.local_models()
    benchmark.pedantic(lambda: method.fit(federation), warmup_rounds=1, rounds=3)


def test_averaging_ten_networks(benchmark):
    states = [build("resnet8-wide", 3, 10, 32).state_dict() for _ in range(10)]
    benchmark.pedantic(lambda: average_states(states, [1.0] * 10), warmup_rounds=1, rounds=3)
