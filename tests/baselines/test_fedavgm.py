"""FedAvgM: server momentum by hand on a toy state."""

import pytest
import torch
from torch import nn

from fedtables.baselines.fedavgm import FedAvgM
from fedtables.methods.fedavg import FedAvg, Round
from tests.federation.tiny import make_federation
from tests.methods.shards import client_with


def run_rounds(method, *rounds):
    """The weight of a one-weight model that starts at 1, after each of `rounds`: what clients of 3
    samples and of 1 send.
    """
    clients = [client_with(0, [0, 1, 2]), client_with(1, [0])]
    federation = make_federation(clients)
    model = nn.Linear(1, 1, bias=False)
    nn.init.ones_(model.weight)
    server = method.server_state(federation, model)
    weights = []
    for number, values in enumerate(rounds, start=1):
        this = Round(federation, number, clients, model, server)
        method.aggregate(this, [{"weight": torch.tensor([[value]])} for value in values])
        weights.append(model.weight.item())
    return weights


@pytest.mark.parametrize(
    ("momentum", "lr", "rounds", "expected"),
    [
        # Averages 3/4 * 0.4 + 1/4 * 0.8 = 0.5 and 0.2. v = 1 - 0.5, w = 1 - v; v = 0.9 * 0.5 +
        # (0.5 - 0.2), w = 0.5 - v.
        (0.9, 1.0, [(0.4, 0.8), (0.2, 0.2)], [0.5, 0.5 - 0.75]),
        # The step size scales the velocity and does not enter it: v = 0.5, w = 1 - 0.1 * 0.5; v =
        # 0.9 * 0.5 + (0.95 - 0.2) = 1.2, w = 0.95 - 0.1 * 1.2.
        (0.9, 0.1, [(0.4, 0.8), (0.2, 0.2)], [0.95, 0.83]),
        (0.5, 1.0, [(0.0, 0.0), (0.0, 0.0)], [0.0, -0.5]),  # it goes on where clients stand still
    ],
)
def test_two_rounds_of_momentum_by_hand(momentum, lr, rounds, expected):
    weights = run_rounds(FedAvgM(server_momentum=momentum, server_lr=lr), *rounds)
    assert weights == pytest.approx(expected)


def test_batchnorm_statistics_take_the_plain_average():
    clients = [client_with(0, [0, 1, 2]), client_with(1, [0])]
    federation, model, method = (
        make_federation(clients),
        nn.BatchNorm1d(1),
        FedAvgM(server_momentum=0.9, server_lr=0.5),
    )
    server = method.server_state(federation, model)
    state = dict(model.state_dict())
    for number, (first, second) in enumerate([(2.0, 6.0), (1.0, 1.0)], start=1):
        states = [{**state, "running_mean": torch.tensor([value])} for value in (first, second)]
        method.aggregate(Round(federation, number, clients, model, server), states)
        assert model.running_mean.item() == (3 * first + second) / 4


def test_without_momentum_and_with_step_one_it_is_fedavg():
    plain = FedAvg(rounds=3).fit(make_federation(clients=5))
    same = FedAvgM(rounds=3, server_momentum=0.0, server_lr=1.0).fit(make_federation(clients=5))
    torch.testing.assert_close(same.state, plain.state)
