"""VGG for small images: how often it pools, and a head of one layer."""

import itertools

import pytest
import torch
from torch import nn

from models.networks.vgg import poolings_that_fit, vgg19


@pytest.mark.parametrize(
    ("side", "poolings", "left"), [(8, 2, 2), (16, 3, 2), (28, 3, 3), (32, 4, 2), (63, 4, 3)]
)
def test_max_pooling_leaves_at_least_two_pixels(side, poolings, left):
    assert poolings_that_fit([64, "M"] * 5, (side, side)).count("M") == poolings
    with torch.device("meta"):
        assert vgg19(3, 10, (side, side)).forward_features(torch.empty(1, 3, side, side)).shape == (
            1,
            512,
            left,
            left,
        )


def test_no_convolution_is_left_out():
    layers = poolings_that_fit([1, 2, "M", 3, "M", 4, "M", 5, "M"], (8, 8))
    assert layers == [1, 2, "M", 3, "M", 4, 5]


def test_a_small_image_needs_one_linear_layer():
    # Of vgg19's 16 convolutions, by input and output channels, with biases and two parameters of
    # BatchNorm per channel.
    widths = [3, 64, 64, 128, 128, *[256] * 4, *[512] * 8]
    convolutions = sum(
        9 * before * after + 3 * after for before, after in itertools.pairwise(widths)
    )
    with torch.device("meta"):
        model = vgg19(3, 10, (32, 32))
    assert sum(p.numel() for p in model.parameters()) == convolutions + 512 * 10 + 10
    assert [tuple(m.weight.shape) for m in model.modules() if isinstance(m, nn.Linear)] == [
        (10, 512)
    ]


def test_a_large_image_goes_through_the_published_network():
    with torch.device("meta"):
        model = vgg19(3, 1000, (224, 224))
        assert (
            sum(p.numel() for p in model.parameters()) == 143_678_248
        )  # as torchvision states it for vgg19_bn
        assert model.forward_features(torch.empty(1, 3, 224, 224)).shape == (1, 512, 7, 7)
