"""Touching objects as three classes per pixel: the loss by hand, and the way back to objects."""

import math

import pytest
import torch

from fedtables.federation.tasks.pixels import Nuclei
from fedtables.metrics.instances import ternary


def square(side, *places):
    """An object map of `side` pixels with a 5 x 5 object at each place."""
    objects = torch.zeros(1, side, side, dtype=torch.int64)
    for number, (row, column) in enumerate(places, 1):
        objects[0, row : row + 5, column : column + 5] = number
    return objects


def test_a_condition_has_a_layer_per_class():
    targets = square(7, (1, 1))
    layers = Nuclei().condition(targets)
    assert layers.shape == (1, 3, 7, 7)
    assert set(layers.flatten().tolist()) == {-1, 1}
    assert torch.equal(layers.argmax(dim=1), ternary(targets))
    assert ((layers > 0).sum(dim=1) == 1).all()
    # Of 5 x 5 pixels the inner 3 x 3 are inside; 5 more lie beyond each side.
    assert Nuclei().pixel_counts(targets).tolist() == [49 - 25 - 20, 9, 16 + 20]


def test_the_loss_is_a_weighted_cross_entropy_by_hand():
    targets = torch.zeros(1, 4, 4, dtype=torch.int64)
    targets[0, :, 2:] = 1  # columns: outside, boundary, boundary, inside
    assert ternary(targets)[0, 0].tolist() == [0, 2, 2, 1]
    even = torch.zeros(1, 3, 4, 4)
    assert Nuclei().loss(even, targets).tolist() == pytest.approx([math.log(3)])
    weighted = Nuclei(weights=(1.0, 2.0, 5.0)).loss(even, targets)
    assert weighted.tolist() == pytest.approx([(1 + 5 + 5 + 2) / 4 * math.log(3)])


def test_a_right_prediction_gives_the_objects_back():
    targets = square(24, (2, 2), (2, 7), (14, 12))  # two of them touch
    task = Nuclei(smallest=5)
    metrics = task.metrics()
    metrics.update(10 * task.condition(targets), targets)
    found = metrics.compute()
    assert tuple(found)[: len(task.metric_names)] == task.metric_names
    assert found["dice"] > 0.8
    assert found["aji"] > 0.6
