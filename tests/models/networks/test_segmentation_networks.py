"""MONAI's networks as the catalogue has them: numbers by hand, and the sides that they halve."""

import pytest
import torch

from models.catalogue import build


def parameters(name, inputs, outputs, side=32):
    with torch.device("meta"):
        return sum(p.numel() for p in build(name, inputs, outputs, side).parameters())


@pytest.mark.parametrize(("name", "kernel"), [("unet-narrow", 9), ("unet-narrow-3d", 27)])
def test_parameters_of_the_narrow_u_net_by_hand(name, kernel):
    # Convolutions 1 to 8, 8 to 16 and 16 to 32 channels; back from 32 + 16 to 8 and from 8 + 8 to
    # 2; a bias each, and the slope of PReLU in all but the last.
    layers = [(1, 8), (8, 16), (16, 32), (48, 8), (16, 2)]
    by_hand = sum(kernel * before * after + after for before, after in layers) + 4
    assert parameters(name, 1, 2) == by_hand


def segresnet(filters, inputs, outputs, kernel):
    """Parameters by hand: a block is two convolutions without bias and two GroupNorms."""

    def block(channels):
        return 2 * kernel * channels**2 + 4 * channels

    widths = [filters * 2**level for level in range(4)]
    halved = sum(kernel * 2 * width**2 for width in widths[:-1])
    down = sum(count * block(width) for count, width in zip((1, 2, 2, 4), widths, strict=True))
    up = sum(2 * width**2 + block(width) for width in widths[:-1])
    last = 2 * filters + filters * outputs + outputs
    return kernel * inputs * filters + halved + down + up + last


@pytest.mark.parametrize(
    ("name", "filters", "kernel"),
    [
        ("segresnet", 16, 9),
        ("segresnet-half", 8, 9),
        ("segresnet-3d", 16, 27),
        ("segresnet-half-3d", 8, 27),
    ],
)
def test_parameters_of_segresnet_by_hand(name, filters, kernel):
    assert parameters(name, 4, 3) == segresnet(filters, 4, 3, kernel)


@pytest.mark.parametrize(
    ("name", "sides"),
    [("unet-narrow", (8, 20)), ("segresnet-half", (16, 24)), ("unet-narrow-3d", (8, 12, 16))],
)
def test_maps_have_finite_values_and_every_weight_a_gradient(name, sides):
    model = build(name, 2, 3, sides)
    maps = model(torch.rand(2, 2, *sides))
    assert maps.shape == (2, 3, *sides)
    maps.square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
