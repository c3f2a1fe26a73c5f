"""Residual networks for small images, layer by layer."""

import pytest
import torch
from torch import nn

from models.catalogue import build
from models.networks.resnet import BasicBlock, MeanOfQuarters, ResNet


def test_a_block_projects_its_input_where_the_shape_changes():
    block = BasicBlock(4, 8, 2)
    assert block.shortcut[0].weight.shape == (8, 4, 1, 1)
    assert block(torch.zeros(1, 4, 6, 6)).shape == (1, 8, 3, 3)


def test_a_block_whose_residual_is_zero_passes_positive_inputs_on():
    block = BasicBlock(2, 2, 1).eval()
    nn.init.zeros_(block.conv2.weight)
    inputs = torch.rand(3, 2, 5, 5)
    torch.testing.assert_close(block(inputs), inputs)


def test_three_stages_halve_the_map_twice_and_pool_to_the_head():
    model = ResNet(3, 10, (16, 32, 64))
    assert model.stages(torch.zeros(1, 16, 32, 32)).shape == (1, 64, 8, 8)
    assert model.head.in_features == 64


def test_the_wide_head_sees_a_map_of_two_by_two():
    assert ResNet(3, 10, (8, 16, 32), pooled=2).head.in_features == 128


def test_the_quarters_of_an_odd_side_share_its_middle():
    maps = torch.tensor([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]])[None, None]
    assert MeanOfQuarters()(maps).flatten().tolist() == [3, 4, 6, 7]


@pytest.mark.parametrize("shape", [(2, 2), (4, 8), (7, 6), (9, 9)])
def test_quarters_are_those_of_adaptive_pooling(shape):
    maps = torch.randn(2, 3, *shape)
    torch.testing.assert_close(MeanOfQuarters()(maps), nn.AdaptiveAvgPool2d(2)(maps))


@pytest.mark.parametrize(
    ("name", "parameters"), [("resnet8-narrow-gn", 78_042), ("resnet8-wide-gn", 4_911_754)]
)
def test_the_forms_with_groupnorm_have_as_many_parameters_and_treat_every_sample_by_itself(
    name, parameters
):
    model = build(name, 3, 10, 16).train()
    assert sum(p.numel() for p in model.parameters()) == parameters
    assert not list(model.buffers())
    images = torch.randn(3, 3, 16, 16)
    torch.testing.assert_close(model(images)[:1], model(images[:1]), atol=1e-5, rtol=1e-4)
