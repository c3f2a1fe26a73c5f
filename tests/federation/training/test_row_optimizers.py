"""Each row ends where torch.optim takes a network of its own."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from federation.training.loops import TrainingPlan
from federation.training.row_optimizers import RowOptimizer

PLANS = {
    "sgd": {"optimizer": "sgd"},
    "momentum": {"optimizer": "sgd", "momentum": 0.9, "weight_decay": 0.1},
    "adam": {"optimizer": "adam"},
    "adam with decay": {"optimizer": "adam", "weight_decay": 0.1},
    "rmsprop": {"optimizer": "rmsprop", "weight_decay": 0.1},
}
STEPS = ((0, 1, 2), (2, 0), (1,), (0, 1, 2), (2,))
"""Rows of each step: one takes five, in another order than its neighbour."""


def plan(**changes):
    return TrainingPlan(epochs=1, batch_size=1, lr=0.01, **changes)


def weights():
    return torch.randn(3, 5, generator=torch.Generator().manual_seed(0))


def gradients():
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(len(rows), 5, generator=generator) for rows in STEPS]


@pytest.mark.parametrize("name", PLANS)
def test_rows_with_steps_of_their_own_are_networks_of_their_own(name):
    found = weights()
    rows = RowOptimizer(plan(**PLANS[name]), found)
    networks = [nn.Parameter(row.clone()) for row in weights()]
    alone = [plan(**PLANS[name]).make_optimizer([network], fused=False) for network in networks]
    for chosen, steps in zip(STEPS, gradients(), strict=True):
        rows.step(steps, None if chosen == (0, 1, 2) else torch.tensor(chosen), torch.tensor(0.01))
        for position, gradient in zip(chosen, steps, strict=True):
            networks[position].grad = gradient
            alone[position].step()
    torch.testing.assert_close(found, torch.stack([n.detach() for n in networks]))


def test_a_step_of_sgd_by_hand():
    found = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    rows = RowOptimizer(plan(optimizer="sgd", momentum=0.5), found)
    rows.step(torch.tensor([[10.0, 0.0]]), torch.tensor([1]), torch.tensor(0.1))
    assert found.tolist() == [[1.0, 2.0], [2.0, 4.0]]
    rows.step(torch.tensor([[1.0, 0.0], [0.0, 0.0]]), None, torch.tensor(0.1))
    assert found.flatten().tolist() == pytest.approx([0.9, 2.0, 1.5, 4.0])  # half of 10 goes on


def test_each_row_is_clipped_by_itself():
    found = torch.zeros(2, 2)
    rows = RowOptimizer(plan(optimizer="sgd", clip_norm=1.0), found)
    rows.step(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), None, torch.tensor(1.0))
    torch.testing.assert_close(found, -torch.tensor([[0.6, 0.8], [0.3, 0.4]]))
