"""FedAvg: Algorithm 1 beside plain PyTorch, who takes part, and every byte that crosses."""

import pytest
import torch

from baselines.fedavgm import FedAvgM
from baselines.fedgen import FedGEN
from benchmarks.tables import registry
from federation.channel import Channel, encoded_size
from federation.parts.networks import HeterogeneousClientsError
from federation.seeds import Seeds
from methods.fedavg import FedAvg
from methods.feddf import FedDF
from methods.fedprox import FedProx
from tests.federation.tiny import make_federation
from tests.methods.shards import (
    WHOLE_BATCHES,
    client_with,
    copied,
    descend,
    mixed_clients,
    same_bits,
    samples_of,
    uneven_clients,
    validation_set,
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


def test_a_round_of_all_clients_is_the_average_of_separate_trainings_weighted_by_size():
    federation = make_federation(uneven_clients(), local=WHOLE_BATCHES)
    model = FedAvg(rounds=1, participation=1.0).fit(federation)
    torch.testing.assert_close(
        model.state,
        by_hand(
            federation, federation.networks.initial("cnn-small").state_dict(), uneven_clients()
        ),
    )


def test_the_second_round_starts_from_the_first_rounds_average():
    clients = uneven_clients()[:3]
    federation = make_federation(clients, local=WHOLE_BATCHES)
    first = by_hand(federation, federation.networks.initial("cnn-small").state_dict(), clients)
    model = FedAvg(rounds=2, participation=1.0).fit(federation)
    torch.testing.assert_close(model.state, by_hand(federation, first, clients))


def test_what_goes_down_is_the_weighted_average_of_what_came_up_the_round_before():
    sent = []
    clients = uneven_clients()
    federation = make_federation(
        clients, channel=Channel(inspect=lambda t, tensors: sent.append((t, copied(tensors))))
    )
    FedAvg(rounds=4, participation=0.4).fit(federation)
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
    for number in (1, 2, 3):
        transfers = [t for t in federation.channel.ledger if t.round == number]
        down = [t.client for t in transfers if t.direction == "down"]
        assert len(set(down)) == 2
        assert sorted(
            (t.direction, t.kind, t.client, t.bytes, t.messages) for t in transfers
        ) == sorted(
            (direction, "parameters", client, size, 1)
            for direction in ("down", "up")
            for client in down
        )
    assert len(federation.channel.ledger) == 3 * 2 * 2
    assert federation.channel.by_kind() == {
        "down/parameters": 3 * 2 * size,
        "up/parameters": 3 * 2 * size,
    }


def participants(rounds=8, **changes):
    federation = make_federation(clients=5, **changes)
    FedAvg(rounds=rounds, participation=0.4).fit(federation)
    return [
        {t.client for t in federation.channel.ledger if t.round == number}
        for number in range(1, rounds + 1)
    ]


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


def test_some_methods_change_what_a_party_computes_and_nothing_that_crosses():
    assert {"feddf", "fedavgm", "fedprox"} <= set(ALIKE)


def test_who_takes_part_changes_from_round_to_round_and_is_drawn_from_the_sampling_seed_alone():
    drawn = participants()
    assert len({frozenset(chosen) for chosen in drawn}) > 1
    assert participants(seeds=Seeds(weights=5, shuffling=5)) == drawn
    assert participants(seeds=Seeds(sampling=5)) != drawn


def test_a_client_without_samples_is_never_asked():
    federation = make_federation([client_with(0, []), client_with(1, [0, 1, 2] * 4)])
    FedAvg(rounds=3, participation=1.0).fit(federation)
    assert {t.client for t in federation.channel.ledger} == {1}


def test_it_learns_and_tracks_the_test_accuracy_after_every_round():
    federation = make_federation(clients=3)
    model = FedAvg(rounds=6, participation=1.0).fit(federation)
    assert len(model.history["accuracy"]) == 6
    assert (
        model.history["accuracy"][-1]
        == federation.evaluation.test(federation.networks.module(model))["accuracy"]
        >= 5 / 6
    )
    assert (model.owner, model.network) == ("server", "cnn-small")


def test_the_same_seeds_give_the_same_weights_to_the_last_bit_and_others_do_not():
    first, again, other = (
        FedAvg(rounds=2).fit(make_federation(clients=3, seeds=seeds)).state
        for seeds in (Seeds(), Seeds(), Seeds(shuffling=1))
    )
    assert same_bits(first, again)
    assert not same_bits(first, other)


@pytest.mark.parametrize("method", [FedAvg, FedProx, FedAvgM, FedGEN, FedDF])
def test_clients_with_different_networks_are_refused_with_the_networks_names(method):
    federation = make_federation(mixed_clients(), validation=validation_set())
    with pytest.raises(
        HeterogeneousClientsError, match=r"cnn-small, resnet8-narrow.*model-agnostic"
    ) as refusal:
        method(rounds=1).fit(federation)
    assert "same network everywhere" in str(refusal.value)
    assert federation.channel.ledger == []


def test_a_server_with_another_network_than_its_clients_is_refused():
    with pytest.raises(HeterogeneousClientsError, match="cnn-small, resnet8-narrow"):
        FedAvg(rounds=1).fit(make_federation(network="resnet8-narrow"))


@pytest.mark.parametrize("share", [0.0, 1.5])
def test_an_impossible_share_of_clients_is_refused(share):
    with pytest.raises(ValueError, match="share of participating clients"):
        FedAvg(rounds=1, participation=share).fit(make_federation())
