"""The small network of reduced profiles."""

import pytest
import torch

from models.networks.cnn import CNN


@pytest.mark.parametrize(("side", "inputs"), [(4, 32), (8, 128), (28, 1568), (30, 1568)])
def test_the_first_linear_layer_fits_the_map_after_two_poolings(side, inputs):
    model = CNN(1, 10, side)
    assert model.features[7].in_features == inputs
    assert model(torch.zeros(2, 1, side, side)).shape == (2, 10)
