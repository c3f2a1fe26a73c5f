"""What outlives a round: it is restored in place; gradients, steps and rates by hand."""

import pytest
import torch

from fedtables.federation.shared.kept import (
    Kept,
    gradient_at,
    linear_term,
    local_steps,
    moved,
    summed_rate,
    zeros_like,
)
from fedtables.federation.training.plan import TrainingPlan
from tests.federation.tiny import make_federation
from tests.methods.shards import client_with, descend, samples_of


def test_a_restored_state_lies_where_it_lay():
    kept = Kept({"w": torch.zeros(2)})
    before = kept["w"]
    kept.load_state_dict({"w": torch.tensor([1.0, 2.0])})
    assert kept["w"] is before
    assert kept.state_dict()["w"].tolist() == [1, 2]


def test_the_linear_term_has_the_direction_for_a_gradient():
    model = torch.nn.Linear(2, 1)
    direction = {"weight": torch.tensor([[3.0, -1.0]]), "bias": torch.tensor([0.5])}
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[1.0, 2.0]]))
        model.bias.fill_(4)
    term = linear_term(model, direction)
    assert term.item() == 3  # 3 - 2 + 0.5 * 4
    term.backward()
    assert (model.weight.grad.tolist(), model.bias.grad.tolist()) == ([[3, -1]], [0.5])


def test_a_move_is_from_what_was_received_to_where_training_ends():
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(model.weight, 5)
    assert moved(model, {"weight": torch.tensor([[3.0]])})["weight"].item() == 2
    assert zeros_like(model)["weight"].tolist() == [[0]]


@pytest.mark.parametrize(
    ("plan", "steps", "each", "way"),
    [
        ({}, 5, 5, 0.5),
        # 1, 1.9, 2.71, 3.439 and 4.0951 times the rate.
        ({"momentum": 0.9}, 5, 5, 1.31441),
        ({"momentum": 0.9}, 5, 2, 1.31441),
        # A cosine from 0.1 to 0 over two epochs has 0.1 in the first and 0.05 in the second.
        ({"schedule": "cosine"}, 4, 2, 0.3),
    ],
)
def test_how_far_steps_go_down_a_gradient_of_one(plan, steps, each, way):
    plan = TrainingPlan(epochs=2, batch_size=4, lr=0.1, optimizer="sgd", **plan)
    assert summed_rate(plan, steps, each) == pytest.approx(way)


@pytest.mark.parametrize(
    ("samples", "steps"),
    [(12, (9, 3)), (14, (12, 4)), (13, (9, 3)), (1, (3, 1))],  # a last single sample is left out
)
def test_local_steps_are_batches_times_epochs(samples, steps):
    client = client_with(0, [k % 3 for k in range(samples)])
    federation = make_federation([client])
    assert local_steps(federation, client, federation.local) == steps


def test_the_gradient_at_a_model_is_that_of_all_samples():
    client = client_with(0, [0, 1, 1, 2, 2])
    federation = make_federation([client], local=TrainingPlan(1, batch_size=2, lr=0.1))
    start, model = (federation.networks.initial("cnn-small") for _ in range(2))
    moves = moved(
        descend(model, *samples_of(client), steps=1, lr=1.0), dict(start.named_parameters())
    )
    found = client.run(gradient_at, federation, client, start)
    torch.testing.assert_close(found, {name: -move for name, move in moves.items()})
