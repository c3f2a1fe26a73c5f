"""FedAvgM: server momentum by hand on a toy state."""

import pytest
import torch
from torch import nn

from baselines.fedavgm import FedAvgM
from methods.fedavg import FedAvg
from tests.federation.tiny import make_federation
from tests.methods.shards import client_with, same_bits


def weight_of(value):
    return {"weight": torch.tensor([[value]])}


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
        method.aggregate(
            federation, model, clients, [weight_of(value) for value in values], number, server
        )
        weights.append(model.weight.item())
    return weights


def test_two_rounds_of_momentum_by_hand():
    # Averages 3/4 * 0.4 + 1/4 * 0.8 = 0.5 and 0.2. v = 1 - 0.5, w = 1 - v; v = 0.9 * 0.5 + (0.5 -
    # 0.2), w = 0.5 - v.
    weights = run_rounds(FedAvgM(server_momentum=0.9, server_lr=1.0), (0.4, 0.8), (0.2, 0.2))
    assert weights == pytest.approx([0.5, 0.5 - 0.75])


def test_the_servers_step_size_scales_the_velocity_but_does_not_enter_it():
    # v = 0.5, w = 1 - 0.1 * 0.5 = 0.95; v = 0.9 * 0.5 + (0.95 - 0.2) = 1.2, w = 0.95 - 0.1 * 1.2.
    weights = run_rounds(FedAvgM(server_momentum=0.9, server_lr=0.1), (0.4, 0.8), (0.2, 0.2))
    assert weights == pytest.approx([0.95, 0.83])


def test_velocity_goes_on_where_clients_stand_still():
    weights = run_rounds(FedAvgM(server_momentum=0.5, server_lr=1.0), (0.0, 0.0), (0.0, 0.0))
    assert weights == pytest.approx([0.0, -0.5])


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
        method.aggregate(federation, model, clients, states, number, server)
        assert model.running_mean.item() == (3 * first + second) / 4


def test_without_momentum_and_with_step_one_it_is_fedavg():
    plain = FedAvg(rounds=3).fit(make_federation(clients=5))
    same = FedAvgM(rounds=3, server_momentum=0.0, server_lr=1.0).fit(make_federation(clients=5))
    torch.testing.assert_close(same.state, plain.state)


def test_momentum_shows_from_the_second_round_on():
    def state(method, rounds):
        return method(rounds=rounds).fit(make_federation(clients=3)).state

    torch.testing.assert_close(state(FedAvgM, 1), state(FedAvg, 1))
    with pytest.raises(AssertionError):
        torch.testing.assert_close(state(FedAvgM, 2), state(FedAvg, 2))


def test_networks_with_batchnorm_are_averaged_too():
    federation = make_federation(
        [client_with(k, [0, 1, 2], "resnet8-narrow") for k in range(2)], network="resnet8-narrow"
    )
    model = FedAvgM(rounds=2, participation=1.0).fit(federation)
    assert all(torch.isfinite(entry).all() for entry in model.state.values())
    assert not same_bits(model.state, federation.networks.initial("resnet8-narrow").state_dict())
