"""FedProx: the proximal term by hand, and what it does to clients."""

import pytest
import torch

from federation.channel import Channel
from methods.fedavg import FedAvg
from methods.fedprox import FedProx, proximal_term
from tests.federation.tiny import make_federation
from tests.methods.shards import (
    WHOLE_BATCHES,
    client_with,
    descend,
    distance,
    same_bits,
    samples_of,
)


def toy_weights():
    return [torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0], requires_grad=True)]


RECEIVED = [torch.tensor([0.0, 0.0]), torch.tensor([1.0])]


def test_the_proximal_term_is_half_mu_times_the_squared_distance_of_all_parameters_together():
    # 0.5 / 2 * (1 + 4 + 4); a norm that is not squared would give 0.75.
    assert proximal_term(toy_weights(), RECEIVED, mu=0.5).item() == 2.25


def test_its_gradient_is_mu_times_the_way_from_the_received_weights():
    weights = toy_weights()
    proximal_term(weights, RECEIVED, mu=0.5).backward()
    assert [w.grad.tolist() for w in weights] == [[0.5, 1.0], [1.0]]


def test_there_is_no_pull_at_the_received_weights():
    weights = toy_weights()
    term = proximal_term(weights, [w.detach().clone() for w in weights], mu=0.5)
    term.backward()
    assert term.item() == 0
    assert [w.grad.tolist() for w in weights] == [[0, 0], [0]]


def test_a_client_descends_the_loss_and_the_pull_to_what_it_received():
    client = client_with(0, [0, 1, 1, 2])
    federation = make_federation([client], local=WHOLE_BATCHES)
    received = [w.detach().clone() for w in federation.networks.initial("cnn-small").parameters()]

    def pull(weights):
        return (
            2.0 / 2 * sum(((w - w_t) ** 2).sum() for w, w_t in zip(weights, received, strict=True))
        )

    expected = descend(
        federation.networks.initial("cnn-small"), *samples_of(client), penalty=pull
    ).state_dict()
    without = descend(federation.networks.initial("cnn-small"), *samples_of(client)).state_dict()
    model = FedProx(rounds=1, mu=2.0).fit(federation)
    torch.testing.assert_close(model.state, expected)
    assert distance(model.state, without) > 100 * distance(model.state, expected)


def test_with_mu_zero_it_is_fedavg_to_the_last_bit():
    prox = FedProx(rounds=3, mu=0.0).fit(make_federation(clients=5))
    plain = FedAvg(rounds=3).fit(make_federation(clients=5))
    assert same_bits(prox.state, plain.state)
    assert prox.history == plain.history


def drifts(mu):
    """How far each client of each of two rounds is, when it sends, from what it received."""
    received, found = {}, []

    def look(transfer, tensors):
        if transfer.direction == "down":
            received[transfer.client] = tensors
        else:
            found.append(distance(received[transfer.client], tensors))

    federation = make_federation(clients=3, local=WHOLE_BATCHES, channel=Channel(inspect=look))
    FedProx(rounds=2, participation=1.0, mu=mu).fit(federation)
    return found


def test_a_larger_mu_keeps_every_client_closer_to_what_it_received():
    loose, firm, tight = drifts(0.0), drifts(1.0), drifts(5.0)
    assert len(loose) == 6
    assert all(a > b > c for a, b, c in zip(loose, firm, tight, strict=True))


@pytest.mark.parametrize("field", ["rounds", "participation"])
def test_its_recipe_is_that_of_fedavg(field):
    assert getattr(FedProx(), field) == getattr(FedAvg(), field)
