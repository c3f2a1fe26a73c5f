"""U-Nets and SegResNet: their numbers by hand, and what joins their levels."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fedtables.models.catalogue import build
from fedtables.models.networks.unet import (
    LARGEST,
    Doubling,
    NonLocal,
    UNet,
    doubled,
    unet_bn,
    unet_in,
)

SIDES = (32, 32)


def by_hand(inputs, outputs, width, bias, norm):
    """Parameters: `bias` by convolution and output channel, `norm` by normalised channel."""
    widths = [width * 2**level for level in range(5)]

    def pair(before, after):
        return 9 * after * (before + after) + 2 * after * (bias + norm)

    down = sum(pair(*level) for level in zip([inputs, *widths[:-1]], widths, strict=True))
    up = sum(8 * after**2 + bias * after + pair(2 * after, after) for after in widths[:-1])
    return down + up + (width + 1) * outputs


def parameters(name, inputs, outputs, side=32):
    with torch.device("meta"):
        return sum(p.numel() for p in build(name, inputs, outputs, side).parameters())


def test_parameters_by_hand():
    assert parameters("unet-64-bn", 3, 1) == by_hand(3, 1, 64, 1, 2) == 31_043_521
    assert parameters("unet-32-in", 1, 1) == by_hand(1, 1, 32, 0, 0) == 7_756_097


@pytest.mark.parametrize(
    ("name", "inputs", "outputs", "count"),
    [
        ("unet-narrow", 1, 2, 9_646),
        ("unet-narrow-3d", 1, 2, 28_798),
        ("segresnet", 4, 3, 1_576_851),
        ("segresnet-half", 4, 3, 395_211),
        ("segresnet-half-3d", 4, 3, 1_176_843),
    ],
)
def test_monais_networks_have_the_layers_that_were_counted_by_hand(name, inputs, outputs, count):
    assert parameters(name, inputs, outputs) == count


def test_maps_are_doubled_as_pytorch_interpolates_linearly():
    assert doubled(torch.tensor([[[0.0, 4.0]]])).tolist() == [[[0.0, 1.0, 3.0, 4.0]]]
    for sides, mode in (((3, 5), "bilinear"), ((2, 1, 4), "trilinear")):
        maps = torch.randn(2, 3, *sides, generator=torch.Generator().manual_seed(0))
        expected = F.interpolate(maps, scale_factor=2, mode=mode)
        torch.testing.assert_close(doubled(maps), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize(("name", "images"), [("segresnet", (8, 8)), ("segresnet-3d", (8, 8, 8))])
def test_a_segresnet_doubles_its_maps_so(name, images):
    model = build(name, 1, 2, images)
    assert sum(isinstance(module, Doubling) for module in model.modules()) == 3


class Mean(nn.Module):
    """The mean of all channels, in each of `after` channels: what every layer is by hand."""

    def __init__(self, before, after):
        super().__init__()
        self.after = after

    def forward(self, maps):
        return maps.mean(dim=1, keepdim=True).expand(-1, self.after, -1, -1)


def test_every_level_is_joined_by_its_own_map():
    model = UNet(
        1,
        1,
        2,
        Mean,
        lambda before, after: nn.Sequential(Mean(before, after), nn.Upsample(scale_factor=2)),
        nn.AvgPool2d(2),
    )
    nn.init.ones_(model.head.weight)
    nn.init.zeros_(model.head.bias)
    image = torch.zeros(1, 1, 16, 16)
    image[0, 0, 0, 0] = 256.0
    # The mean of the image is 1; of its corner of 8, 4, 2 and 1 pixels 4, 16, 64 and 256. A level
    # is the mean of its own map and of what comes from below; the head adds two channels.
    expected = 1.0
    for corner in (4.0, 16.0, 64.0, 256.0):
        expected = (expected + corner) / 2
    assert model(image)[0, 0, 0, 0].item() == 2 * expected


def test_half_of_the_last_level_is_left_out_in_training_alone():
    torch.manual_seed(0)
    model = unet_bn(16).build(1, 1, SIDES)
    shares = []
    model.dropout.register_forward_hook(
        lambda module, inputs, output: shares.append(
            (output[inputs[0] != 0] != 0).float().mean().item()
        )
    )
    image = torch.rand(2, 1, 16, 16)
    model.train()(image)
    model.eval()(image)
    assert shares == [pytest.approx(0.5, abs=0.05), 1.0]


def test_attention_is_the_softmax_of_similarities_and_its_columns_add_up_to_one():
    maps = torch.tensor([[[[1.0, 0.0]], [[0.0, 2.0]]]])  # positions (1, 0) and (0, 2)
    attention = NonLocal().attention(maps)
    e, e4 = torch.e, torch.e**4
    expected = torch.tensor([[[e / (e + 1), 1 / (1 + e4)], [1 / (e + 1), e4 / (1 + e4)]]])
    torch.testing.assert_close(attention, expected)
    torch.testing.assert_close(attention.sum(dim=1), torch.ones(1, 2))


def test_a_non_local_block_adds_no_parameter():
    plain, wide = (unet_in(8, bottom).build(1, 1, SIDES) for bottom in (nn.Identity, NonLocal))
    assert plain.state_dict().keys() == wide.state_dict().keys()
    wide.load_state_dict(plain.state_dict())
    images = torch.rand(1, 1, 32, 32)
    assert not torch.equal(plain(images), wide(images))


def test_a_network_sees_mean_0_and_deviation_1_cut_off_and_its_output_is_scaled_back():
    model, seen = unet_in(2).build(1, 1, SIDES).eval(), []
    model.down[0].register_forward_pre_hook(lambda level, inputs: seen.append(inputs[0]))
    nn.init.zeros_(model.head.weight)
    nn.init.constant_(model.head.bias, 2.0)
    image = torch.full((1, 1, 32, 32), 0.25)
    image[..., ::2] = 0.75  # mean 1/2; deviation 1/4, but for one of 1024 values
    with torch.no_grad():
        made = model(image)
    deviation = 0.25 * (1024 / 1023) ** 0.5
    torch.testing.assert_close(seen[0], (image - 0.5) / deviation)
    torch.testing.assert_close(made, torch.full_like(image, 0.5 + 2 * deviation))
    image = torch.zeros(1, 1, 32, 32)
    image[0, 0, 0, 0] = 1.0  # 32 deviations from the mean
    model(image)
    assert seen[1].max().item() == LARGEST
