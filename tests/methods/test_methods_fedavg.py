"""FedAvg: Algorithm 1 beside plain PyTorch, who takes part, and every byte that crosses."""

import pytest
import torch

from fedtables.benchmarks.tables import registry
from fedtables.federation.channel import encoded_size
from fedtables.federation.inside.networks import HeterogeneousClientsError
from fedtables.methods.fedavg import FedAvg
from tests.federation.tiny import make_federation
from tests.methods.shards import (
    WHOLE_BATCHES,
    booked,
    descend,
    mixed_clients,
    recorded,
    samples_of,
    uneven_clients,
)


def by_hand(federation, start, clients):
    """The average of networks trained from `start` on each of `clients`, weighted by their
    sizes.
    """
    total = sum(client.size for client in clients)
    average = {name: torch.zeros_like(weights) for name, weights in start.items()}
    for client in clients:
        network = federation.networks.initial(client.network)
        network.load_state_dict(start)
        for name, weights in descend(network, *samples_of(client)).state_dict().items():
            average[name] += client.size / total * weights
    return average


def test_the_second_round_starts_from_the_first_rounds_average():
    clients = uneven_clients()[:3]
    federation = make_federation(clients, local=WHOLE_BATCHES)
    first = by_hand(federation, federation.networks.initial("cnn-small").state_dict(), clients)
    model = FedAvg(rounds=2, participation=1.0).fit(federation)
    torch.testing.assert_close(model.state, by_hand(federation, first, clients))


def test_what_goes_down_is_the_weighted_average_of_what_came_up_the_round_before():
    clients = uneven_clients()
    _, sent = recorded(FedAvg(rounds=4, participation=0.4), make_federation(clients))
    for number in (2, 3, 4):
        up = [
            (clients[t.client].size, state)
            for t, state in sent
            if (t.round, t.direction) == (number - 1, "up")
        ]
        down = [state for t, state in sent if (t.round, t.direction) == (number, "down")]
        total = sum(size for size, _ in up)
        expected = {name: sum(size / total * state[name] for size, state in up) for name in down[0]}
        assert len(down) == 2
        for state in down:
            torch.testing.assert_close(state, expected)


def test_two_of_five_clients_take_part_and_each_gets_and_sends_the_whole_state_to_the_byte():
    federation = make_federation(clients=5)
    FedAvg(rounds=3, participation=0.4).fit(federation)
    size = encoded_size(federation.networks.initial("cnn-small").state_dict())
    found = booked(federation)
    assert set(found.values()) == {(size, 1)}
    for number in (1, 2, 3):
        down, up = (
            {k for n, way, kind, k in found if (n, way, kind) == (number, direction, "parameters")}
            for direction in ("down", "up")
        )
        assert down == up
        assert len(down) == 2
    assert len(found) == 3 * 2 * 2


def sends_the_same(name):
    """Whether a method derives from FedAvg, and its clients send all that FedAvg's do and no
    more.
    """
    method = registry.find_method(name).load()
    return (
        issubclass(method, FedAvg)
        and method is not FedAvg
        and (method.sends, method.payload) == (FedAvg.sends, FedAvg.payload)
    )


ALIKE = [name for name in registry.methods() if sends_the_same(name)]


@pytest.mark.parametrize("name", ALIKE)
def test_nothing_crosses_with_what_derives_from_fedavg_that_does_not_with_fedavg(name):
    derived, plain = (make_federation(clients=5) for _ in range(2))
    method, fields = registry.find_method(name).load(), {"rounds": 2, "participation": 0.4}
    method(**{**method.quick, **fields}).fit(derived)
    FedAvg(**fields).fit(plain)
    assert derived.channel.ledger == plain.channel.ledger


def test_clients_with_different_networks_are_refused_with_the_networks_names():
    federation = make_federation(mixed_clients())
    with pytest.raises(
        HeterogeneousClientsError, match=r"cnn-small, resnet8-narrow.*model-agnostic"
    ) as refusal:
        FedAvg(rounds=1).fit(federation)
    assert "same network everywhere" in str(refusal.value)
    assert federation.channel.ledger == []
