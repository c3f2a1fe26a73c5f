"""MobileNetV2 for small images: two strides fewer, and a slim one."""

import copy

import pytest
import torch
from torch import nn

from models.networks.mobilenet import DepthwiseConv2d, mobilenetv2, mobilenetv2_slim


@pytest.mark.parametrize(("side", "left"), [(8, 1), (32, 4), (64, 2)])
@pytest.mark.parametrize(("network", "channels"), [(mobilenetv2, 1280), (mobilenetv2_slim, 128)])
def test_small_images_are_halved_two_times_less(network, channels, side, left):
    with torch.device("meta"):
        model = network(3, 10, (side, side))
        assert model.forward_features(torch.empty(2, 3, side, side)).shape == (
            2,
            channels,
            left,
            left,
        )


def test_the_networks_size_is_the_published_one():
    with torch.device("meta"):
        assert (
            sum(p.numel() for p in mobilenetv2(3, 1000, (32, 32)).parameters()) == 3_504_872
        )  # as torchvision states it


def test_the_slim_one_has_a_quarter_of_the_channels_and_half_of_the_blocks():
    model = mobilenetv2_slim(3, 10, (16, 16))
    assert [len(stage) for stage in model.blocks] == [1, 1, 2, 2, 2, 2, 1]
    depthwise = [m for m in model.modules() if isinstance(m, nn.Conv2d) and m.groups > 1]
    assert len(depthwise) == 11
    assert model.conv_head.in_channels == 80  # 320 / 4
    assert sum(p.numel() for p in model.parameters()) == 102_186
    assert any(isinstance(m, nn.ReLU6) for m in model.modules())


def test_depthwise_convolutions_alone_stay_in_float32_under_autocast():
    model = mobilenetv2_slim(3, 10, (16, 16))
    types: dict[bool, set[torch.dtype]] = {True: set(), False: set()}
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            depthwise = module.groups > 1
            assert isinstance(module, DepthwiseConv2d) == depthwise
            module.register_forward_hook(
                lambda _, __, outputs, depthwise=depthwise: types[depthwise].add(outputs.dtype)
            )
    with torch.autocast("cpu", torch.bfloat16):
        model(torch.randn(2, 3, 16, 16)).float().sum().backward()
    assert types == {True: {torch.float32}, False: {torch.bfloat16}}


def test_without_autocast_a_depthwise_convolution_is_torchs_own():
    (ours, *_) = (
        m for m in mobilenetv2_slim(3, 10, (16, 16)).modules() if m.__class__ is DepthwiseConv2d
    )
    torchs = copy.deepcopy(ours)
    torchs.__class__ = nn.Conv2d
    images = torch.randn(2, ours.in_channels, 16, 16)
    assert torch.equal(ours(images), torchs(images))
