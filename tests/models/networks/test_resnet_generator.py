"""The image-to-image generator of residual blocks."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fedtables.models.networks.resnet_generator import NETWORKS, ResNetGenerator, reflected


def test_parameters_by_hand():
    # 7 x 7 from 3 to 64 channels, strides to 128 and 256, two convolutions in each of nine blocks,
    # back to 128 and 64, 7 x 7 to 3; a bias each.
    layers = [
        (49, 3, 64),
        (9, 64, 128),
        (9, 128, 256),
        *[(9, 256, 256)] * 18,
        (9, 256, 128),
        (9, 128, 64),
        (49, 64, 3),
    ]
    by_hand = sum(kernel * before * after + after for kernel, before, after in layers)
    with torch.device("meta"):
        model = ResNetGenerator(3, 3)
    assert sum(p.numel() for p in model.parameters()) == by_hand == 11_378_179


def test_the_released_form_has_batchnorm_dropout_and_small_weights():
    with torch.device("meta"):
        released_form = NETWORKS["resnet-generator-bn"].build(3, 3, (256, 256))
    # As above without the biases but the last one, and two numbers for each channel of a norm.
    channels = 64 + 128 + 256 + 18 * 256 + 128 + 64
    by_hand = 11_378_179 - channels + 2 * channels
    assert sum(p.numel() for p in released_form.parameters()) == by_hand == 11_383_427
    torch.manual_seed(0)
    narrow = NETWORKS["resnet-generator-bn-narrow"].build(3, 3, (32, 32))
    weights = torch.cat([m.weight.flatten() for m in narrow.modules() if isinstance(m, nn.Conv2d)])
    assert abs(weights.mean()) < 1e-3
    assert weights.std().item() == pytest.approx(0.02, rel=0.05)
    assert sum(isinstance(module, nn.Dropout) for module in narrow.modules()) == 3
    inputs = torch.rand(2, 3, 32, 32)
    assert not torch.equal(narrow(inputs), narrow(inputs))  # dropout draws anew while it trains


def test_borders_are_reflected_by_hand_and_as_torch_does_it():
    row = torch.tensor([[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]]])
    assert reflected(row, 1)[0, 0].tolist() == [
        [5.0, 4.0, 5.0, 6.0, 5.0],
        [2.0, 1.0, 2.0, 3.0, 2.0],
        [5.0, 4.0, 5.0, 6.0, 5.0],
        [8.0, 7.0, 8.0, 9.0, 8.0],
        [5.0, 4.0, 5.0, 6.0, 5.0],
    ]
    maps = torch.rand(2, 3, 8, 12, generator=torch.Generator().manual_seed(0), requires_grad=True)
    other = maps.detach().clone().requires_grad_()
    ours, torchs = reflected(maps, 3), F.pad(other, (3, 3, 3, 3), mode="reflect")
    torch.testing.assert_close(ours, torchs)
    ours.square().sum().backward()
    torchs.square().sum().backward()
    torch.testing.assert_close(maps.grad, other.grad)
