"""SCAFFOLD: control variates by hand, what crosses, and a step with all clients."""

import pytest
import torch

from fedtables.baselines.scaffold import CONTROL, SCAFFOLD, new_control
from fedtables.federation.channel import encoded_size
from fedtables.federation.training.plan import TrainingPlan
from tests.federation.tiny import make_federation
from tests.methods.shards import (
    ONE_STEP,
    booked,
    client_with,
    descend,
    recorded,
    samples_of,
    uneven_clients,
)

SGD = TrainingPlan(epochs=2, batch_size=4, lr=0.05, optimizer="sgd")


def test_the_new_control_variate_by_hand():
    # c_i = 3, c = 1, x - y = 0.5 after K eta = 0.1: 3 - 1 + 5.
    found = new_control({"w": torch.tensor(-0.5)}, {"w": torch.tensor(1.0 - 3.0)}, 0.1)
    assert found["w"].item() == pytest.approx(7)


def gradients(federation, state):
    """Of each client's loss at `state`, by the parameter's name."""
    found = []
    for client in federation.clients:
        network = federation.networks.initial()
        network.load_state_dict(state)
        start = {name: w.detach().clone() for name, w in network.named_parameters()}
        descend(network, *samples_of(client), steps=1, lr=1.0)
        found.append({n: start[n] - w.detach() for n, w in network.named_parameters()})
    return found


def test_one_step_with_all_clients_is_gradient_descent_on_the_mean_of_their_losses():
    clients = uneven_clients()[:3]  # of three sizes, which do not count
    federation = make_federation(clients, local=ONE_STEP)
    state = federation.networks.initial().state_dict()
    first = gradients(federation, state)
    model, sent = recorded(SCAFFOLD(rounds=2, participation=1.0), federation)
    for now in (first, None):
        now = now or gradients(federation, state)
        for name, weights in state.items():
            weights -= 0.1 * sum(own[name] for own in now) / 3
    torch.testing.assert_close(model.state, state)
    for (transfer, message), own in zip(
        [pair for pair in sent if pair[0].direction == "up"][:3], first, strict=True
    ):
        control = {n.removeprefix(CONTROL): t for n, t in message.items() if n.startswith(CONTROL)}
        torch.testing.assert_close(control, own, msg=str(transfer))


@pytest.mark.parametrize("plan", [SGD, TrainingPlan(epochs=1, batch_size=4, lr=0.01)])
def test_the_servers_control_variate_is_the_mean_of_all_clients_own(plan):
    federation = make_federation(5, local=plan)
    _, sent = recorded(SCAFFOLD(rounds=4, participation=0.4), federation)
    names = [name for name, _ in federation.networks.initial().named_parameters()]
    mean = {name: torch.zeros(()) for name in names}
    for number in (1, 2, 3, 4):
        of_round = [(t.direction, tensors) for t, tensors in sent if t.round == number]
        down = [tensors for direction, tensors in of_round if direction == "down"]
        assert len(down) == 4
        for control in down[1::2] if number > 1 else ():  # behind each model
            torch.testing.assert_close(control, mean, atol=1e-6, rtol=1e-4)
        for direction, tensors in of_round:
            if direction == "up":
                mean = {name: mean[name] + tensors[CONTROL + name] / 5 for name in names}


def test_with_another_optimiser_the_control_variate_is_the_gradient_at_what_was_received():
    federation = make_federation([client_with(0, [0, 1, 2, 2])], local=TrainingPlan(1, 4, 0.01))
    expected = gradients(federation, federation.networks.initial().state_dict())[0]
    _, sent = recorded(SCAFFOLD(rounds=1, participation=1.0), federation)
    (message,) = [tensors for t, tensors in sent if t.direction == "up"]
    torch.testing.assert_close({n: message[CONTROL + n] for n in expected}, expected)


def test_model_and_control_variate_cross_in_both_directions():
    federation = make_federation(local=SGD, network="resnet8-narrow", clients=two_residual())
    SCAFFOLD(rounds=2, participation=1.0).fit(federation)
    network = federation.networks.initial("resnet8-narrow")
    parameters = dict(network.named_parameters())
    both = {**network.state_dict(), **{CONTROL + name: w for name, w in parameters.items()}}
    down = encoded_size(network.state_dict()) + encoded_size(parameters)
    expected = {(n, "down", "parameters", k): (down, 2) for n in (1, 2) for k in (0, 1)}
    expected |= {
        (n, "up", "parameters", k): (encoded_size(both), 1) for n in (1, 2) for k in (0, 1)
    }
    assert booked(federation) == expected


def two_residual():
    """Two clients whose networks have BatchNorm."""
    return [client_with(k, [0, 1, 2] * 4, "resnet8-narrow") for k in (0, 1)]


def test_buffers_of_batchnorm_take_the_plain_mean():
    federation = make_federation(local=SGD, network="resnet8-narrow", clients=two_residual())
    model, sent = recorded(SCAFFOLD(rounds=1, participation=1.0), federation)
    first, second = (tensors for t, tensors in sent if t.direction == "up")
    buffers = [name for name in model.state if name.endswith("running_var")]
    assert buffers
    for name in buffers:
        torch.testing.assert_close(model.state[name], (first[name] + second[name]) / 2)
