"""The LeNet with sigmoids, layer by layer."""

import pytest
import torch
from torch import nn

from models.catalogue import build
from models.networks.lenet import SigmoidLeNet


@pytest.mark.parametrize(
    ("network", "by_hand"),
    [
        # weights and biases of three convolutions, then of the head on 12 maps of 8 x 8, 7 x 7 and
        # 2 x 2
        (
            ("lenet-sigmoid", 3, 100, 32),
            (3 * 12 * 25 + 12) + 2 * (12 * 12 * 25 + 12) + (768 * 100 + 100),
        ),
        (
            ("lenet-sigmoid", 1, 10, 28),
            (1 * 12 * 25 + 12) + 2 * (12 * 12 * 25 + 12) + (588 * 10 + 10),
        ),
        (
            ("lenet-sigmoid", 1, 10, 8),
            (1 * 12 * 25 + 12) + 2 * (12 * 12 * 25 + 12) + (48 * 10 + 10),
        ),
    ],
)
def test_the_number_of_parameters_is_the_one_counted_by_hand(network, by_hand):
    with torch.device("meta"):
        assert sum(p.numel() for p in build(*network).parameters()) == by_hand


@pytest.mark.parametrize(
    ("side", "inputs"), [(4, 12), (8, 48), (28, 588), (30, 768), (32, 768), (33, 972)]
)
def test_the_head_fits_the_map_after_two_halvings_rounded_up(side, inputs):
    model = SigmoidLeNet(1, 10, (side, side))
    assert model.head.in_features == inputs
    assert model(torch.zeros(2, 1, side, side)).shape == (2, 10)


def test_weights_and_biases_start_uniform_within_a_half():
    torch.manual_seed(0)
    for name, parameter in SigmoidLeNet(3, 100, (32, 32)).named_parameters():
        assert parameter.abs().max() <= 0.5, name
        if parameter.numel() > 500:
            assert parameter.mean().abs() < 0.05, name
            assert parameter.var().item() == pytest.approx(1 / 12, rel=0.1), name


def test_without_weights_every_map_is_a_half_and_the_head_sums_it():
    model = SigmoidLeNet(1, 2, (4, 4))
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    nn.init.ones_(model.head.weight)
    torch.testing.assert_close(model(torch.rand(3, 1, 4, 4)), torch.full((3, 2), 12 * 0.5))


def test_the_gradient_has_a_gradient_everywhere():
    model = SigmoidLeNet(1, 3, (8, 8)).double()
    image = torch.rand(1, 1, 8, 8, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(model(image)[0, 0], image, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), image)
    assert (second != 0).all()
