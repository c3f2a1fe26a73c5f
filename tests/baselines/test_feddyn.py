"""FedDyn: the regulariser by hand, and rounds on quadratic losses that are solved exactly."""

import pytest
import torch

from fedtables.baselines.feddyn import FedDyn
from fedtables.federation.training.plan import Batch
from fedtables.methods.fedavg import Round
from tests.federation.tiny import make_federation

EMPTY = Batch(*[torch.zeros(0)] * 3)


class OneWeight(torch.nn.Module):
    def __init__(self, weight=0.0):
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor(weight))


class Quadratic:
    """Clients with losses a / 2 (w - b)^2, which each minimises exactly with its penalty."""

    def __init__(self, losses, start, alpha):
        self.method = FedDyn(alpha=alpha)
        self.losses = losses
        self.federation = make_federation(len(losses))
        self.model = OneWeight(start)
        self.server = self.method.server_state(self.federation, self.model)
        clients = self.federation.clients
        self.kept = {
            c.index: self.method.client_state(self.federation, c, self.model) for c in clients
        }

    def round(self, drawn):
        clients = [self.federation.clients[k] for k in drawn]
        this = Round(self.federation, 1, clients, self.model, self.server, self.kept)
        sent = []
        for client in clients:
            (a, b), alpha = self.losses[client.index], self.method.alpha
            before, gradient = self.model.w.item(), self.gradients[client.index]
            worker = OneWeight((a * b + gradient + alpha * before) / (a + alpha))
            received = {"w": torch.tensor(before)}
            sent.append(self.method.payload(this, client, worker, received))
        self.method.aggregate(this, iter(sent))
        return [state["w"].item() for state in sent]

    @property
    def gradients(self):
        return [own["gradient"]["w"].item() for own in self.kept.values()]


def test_the_regulariser_by_hand():
    federation = make_federation(1)
    (client,), model = federation.clients, OneWeight(2.0)
    kept = {0: FedDyn().client_state(federation, client, model)}
    kept[0]["gradient"]["w"].fill_(3)
    this = Round(federation, 2, [client], model, {}, kept)
    term = FedDyn(alpha=0.5).penalty(this, client, model)
    with torch.no_grad():
        model.w.fill_(4)
    found = term(model, EMPTY)
    assert found.item() == -11  # -3 * 4 + 0.5 / 2 * (4 - 2)^2
    found.backward()
    assert model.w.grad.item() == -2  # -3 + 0.5 * 2


def test_the_first_round_with_all_clients_goes_twice_as_far_as_their_mean():
    run = Quadratic([(1.0, 3.0), (2.0, -1.0)], start=0.5, alpha=0.1)
    sent = run.round([0, 1])
    assert run.model.w.item() == pytest.approx(2 * sum(sent) / 2 - 0.5)


def test_the_servers_state_is_the_mean_of_the_clients_gradients_whoever_takes_part():
    run = Quadratic([(1.0, 3.0), (2.0, -1.0), (0.5, 0.0)], start=0.5, alpha=0.1)
    for drawn in ([0, 1], [2], [0, 2], [1]):
        run.round(drawn)
        h = run.server["h"]["w"].item()
        assert h == pytest.approx(sum(run.gradients) / 3, abs=1e-6)


def test_it_reaches_the_minimum_of_the_sum_where_an_average_would_not():
    run = Quadratic([(1.0, 3.0), (4.0, -1.0)], start=0.0, alpha=1.0)
    for _ in range(200):
        run.round([0, 1])
    assert run.model.w.item() == pytest.approx((1 * 3 - 4 * 1) / 5, abs=1e-4)  # mean b is 1


def test_a_client_keeps_the_gradient_of_its_own_loss():
    run = Quadratic([(1.0, 3.0)], start=0.0, alpha=0.5)
    (w,) = run.round([0])
    assert run.gradients[0] == pytest.approx(1.0 * (w - 3.0))  # the minimum's first-order condition
