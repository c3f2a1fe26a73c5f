"""Small networks for small images, layer by layer."""

import pytest
import torch
from torch import nn

from fedtables.models.catalogue import build
from fedtables.models.networks.small import (
    BasicBlock,
    MeanOfQuarters,
    PreActivationBlock,
    SigmoidLeNet,
    Unchanged,
    WideResNet,
)

# -- the LeNet with sigmoids --


def test_the_lenets_number_of_parameters_is_the_one_counted_by_hand():
    # weights and biases of three convolutions, then of the head on 12 maps of 8 x 8
    by_hand = (3 * 12 * 25 + 12) + 2 * (12 * 12 * 25 + 12) + (768 * 100 + 100)
    assert sum(p.numel() for p in SigmoidLeNet(3, 100, (32, 32)).parameters()) == by_hand


def test_the_lenets_weights_and_biases_start_uniform_within_a_half():
    torch.manual_seed(0)
    for name, parameter in SigmoidLeNet(3, 100, (32, 32)).named_parameters():
        assert parameter.abs().max() <= 0.5, name
        if parameter.numel() > 500:
            assert parameter.mean().abs() < 0.05, name
            assert parameter.var().item() == pytest.approx(1 / 12, rel=0.1), name


def test_the_lenets_gradient_has_a_gradient_everywhere():
    model = SigmoidLeNet(1, 3, (8, 8)).double()
    image = torch.rand(1, 1, 8, 8, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(model(image)[0, 0], image, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), image)
    assert (second != 0).all()


# -- residual networks --


@pytest.mark.parametrize("kind", [BasicBlock, PreActivationBlock])
def test_a_block_whose_residual_is_zero_passes_positive_inputs_on(kind):
    block = kind(2, 2, 1).eval()
    nn.init.zeros_(block.conv2.weight)
    inputs = torch.rand(3, 2, 5, 5)
    torch.testing.assert_close(block(inputs), inputs)


@pytest.mark.parametrize("shape", [(2, 2), (4, 8), (7, 6), (9, 9)])
def test_quarters_are_those_of_adaptive_pooling(shape):
    maps = torch.randn(2, 3, *shape)
    torch.testing.assert_close(MeanOfQuarters()(maps), nn.AdaptiveAvgPool2d(2)(maps))


@pytest.mark.parametrize(
    ("name", "parameters"), [("resnet8-narrow-gn", 78_042), ("resnet8-wide-gn", 4_911_754)]
)
def test_with_groupnorm_there_are_as_many_parameters_and_every_sample_is_treated_by_itself(
    name, parameters
):
    model = build(name, 3, 10, 16).train()
    assert sum(p.numel() for p in model.parameters()) == parameters
    assert not list(model.buffers())
    images = torch.randn(3, 3, 16, 16)
    torch.testing.assert_close(model(images)[:1], model(images[:1]), atol=1e-5, rtol=1e-4)


# -- wide residual networks --


def test_the_shortcut_of_a_wide_block_that_changes_shape_sees_the_activated_input():
    own = PreActivationBlock(1, 1, 2).eval()
    nn.init.zeros_(own.conv2.weight)
    nn.init.ones_(own.shortcut.weight)
    near = {"atol": 1e-5, "rtol": 0}
    torch.testing.assert_close(own(torch.full((1, 1, 4, 4), -1.0)), torch.zeros(1, 1, 2, 2))
    torch.testing.assert_close(own(torch.ones(1, 1, 4, 4)), torch.ones(1, 1, 2, 2), **near)


def test_a_wide_networks_map_is_normalised_and_activated_last():
    model = WideResNet(3, 10, 10, 1).train()
    features = model.forward_features(torch.randn(8, 3, 16, 16))
    assert features.shape == (8, 64, 4, 4)
    assert features.min() == 0
    # Half of a normal variable is cut off: the mean of what remains is 1 / sqrt(2 pi) = 0.399.
    assert features.mean().item() == pytest.approx(0.399, abs=0.03)


# -- what changes nothing --


def test_a_grey_image_is_unchanged_and_of_colours_every_output_is_the_mean():
    image = torch.rand(2, 1, 5, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(Unchanged(1)(image), image)
    colours = torch.tensor([0.25, 0.5, 0.75]).view(1, 3, 1, 1).expand(1, 3, 2, 2)
    assert torch.equal(Unchanged(2)(colours), torch.full((1, 2, 2, 2), 0.5))


def test_its_one_number_can_be_trained():
    model = build("unchanged", 1, 1, 4)
    assert [p.numel() for p in model.parameters()] == [1]
    model(torch.full((1, 1, 2, 2), 0.5)).sum().backward()
    assert model.gain.grad.item() == pytest.approx(4 * 0.5)
