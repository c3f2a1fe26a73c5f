"""Operators of a training step are counted, and there are fewer for each client that is trained
with others.
"""

from __future__ import annotations

import pytest
import torch

from benchmarks.speed.launches import (
    AUGMENTATION,
    distillation_operators,
    launches_beside_graphs,
    operators,
    step_operators,
)


def test_innermost_operators_are_counted_without_views():
    ones = torch.ones(2, 3)
    found = operators(lambda: (ones.t().t() + ones).view(-1) * ones.view(-1))
    assert found == {"add": 1, "mul": 1}


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_sixteen_clients_together_take_a_fifth_of_the_operators_each(optimizer):
    alone, together = (step_operators(optimizer, n, AUGMENTATION, batch=4) for n in (1, 16))
    assert 5 * together / 16 <= alone


@pytest.mark.parametrize("clients", [1, 16])
def test_beside_its_graph_a_step_only_gathers_its_batch(clients):
    """Images and targets of each client are gathered and copied; and there is its graph."""
    found = launches_beside_graphs("adam", clients, batch=4)
    assert found == (2 + 2 + 1) * clients
    drawing = launches_beside_graphs("adam", clients, AUGMENTATION, batch=4)
    assert drawing == found + 2 * clients


def test_a_further_teacher_of_fediods_step_takes_a_fifth_of_the_operators_together():
    """Beside what the server computes, which is the same."""
    alone, together = (
        distillation_operators(10, n, batch=4) - distillation_operators(5, n, batch=4)
        for n in (1, 10)
    )
    assert 5 * together <= alone
