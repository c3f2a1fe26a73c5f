"""The small network of reduced profiles."""

import pytest
import torch

from models.networks.cnn import CNN


@pytest.mark.parametrize(
    ("sides", "inputs"),
    [((4, 4), 32), ((8, 8), 128), ((28, 28), 1568), ((30, 30), 1568), ((8, 28), 448)],
)
def test_the_first_linear_layer_fits_the_map_after_two_poolings(sides, inputs):
    model = CNN(1, 10, sides)
    assert model.features[7].in_features == inputs
    assert model(torch.zeros(2, 1, *sides)).shape == (2, 10)
