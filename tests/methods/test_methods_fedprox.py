"""FedProx: the proximal term by hand, and what it does to clients."""

import torch

from fedtables.methods.fedavg import FedAvg
from fedtables.methods.fedprox import FedProx, proximal_term
from tests.federation.tiny import make_federation
from tests.methods.shards import (
    WHOLE_BATCHES,
    client_with,
    descend,
    distance,
    same_bits,
    samples_of,
)


def test_the_proximal_term_is_half_mu_times_the_squared_distance_of_all_parameters_together():
    weights = [torch.tensor([1.0, 2.0]), torch.tensor([3.0])]
    weights = [w.requires_grad_() for w in weights]
    term = proximal_term(weights, [torch.tensor([0.0, 0.0]), torch.tensor([1.0])], mu=0.5)
    assert term.item() == 2.25  # 0.5 / 2 * (1 + 4 + 4); a norm that is not squared gives 0.75
    term.backward()
    assert [w.grad.tolist() for w in weights] == [[0.5, 1.0], [1.0]]


def test_a_client_descends_the_loss_and_the_pull_to_what_it_received():
    client = client_with(0, [0, 1, 1, 2])
    federation = make_federation([client], local=WHOLE_BATCHES)
    received = [w.detach().clone() for w in federation.networks.initial("cnn-small").parameters()]

    def pull(weights):
        pairs = zip(weights, received, strict=True)
        return 2.0 / 2 * sum(((w - w_t) ** 2).sum() for w, w_t in pairs)

    start, other = (federation.networks.initial("cnn-small") for _ in range(2))
    expected = descend(start, *samples_of(client), penalty=pull).state_dict()
    without = descend(other, *samples_of(client)).state_dict()
    model = FedProx(rounds=1, mu=2.0).fit(federation)
    torch.testing.assert_close(model.state, expected)
    assert distance(model.state, without) > 100 * distance(model.state, expected)


def test_with_mu_zero_it_is_fedavg_to_the_last_bit():
    prox = FedProx(rounds=3, mu=0.0).fit(make_federation(clients=5))
    plain = FedAvg(rounds=3).fit(make_federation(clients=5))
    assert same_bits(prox.state, plain.state)
    assert prox.history == plain.history
