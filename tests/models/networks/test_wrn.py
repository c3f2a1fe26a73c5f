"""Wide ResNets, layer by layer."""

import pytest
import torch
from torch import nn

from models.networks.wrn import PreActivationBlock, WideResNet


def block(before, after, stride=1):
    """Parameters of a block by hand: two scales and shifts, two 3 x 3 convolutions, and a 1 x 1 one
    where the shape changes.
    """
    shortcut = before * after if stride != 1 or before != after else 0
    return 2 * before + 9 * before * after + 2 * after + 9 * after * after + shortcut


def test_wrn_16_2_has_the_published_number_of_parameters():
    by_hand = (
        27 * 16
        + block(16, 32)
        + block(32, 32)
        + block(32, 64, 2)
        + block(64, 64)
        + block(64, 128, 2)
        + block(128, 128)
    )
    by_hand += 2 * 128 + 128 * 10 + 10
    with torch.device("meta"):
        assert sum(p.numel() for p in WideResNet(3, 10, 16, 2).parameters()) == by_hand == 691_674


@pytest.mark.parametrize("depth", [4, 8, 14, 15])
def test_a_depth_that_is_not_6n_plus_4_is_refused(depth):
    with pytest.raises(ValueError, match=rf"has 6n \+ 4 layers.* not {depth}"):
        WideResNet(3, 10, depth, 1)


def test_a_block_whose_residual_is_zero_passes_its_input_on():
    own = PreActivationBlock(2, 2, 1).eval()
    nn.init.zeros_(own.conv2.weight)
    inputs = torch.randn(3, 2, 5, 5)
    assert torch.equal(own(inputs), inputs)


def test_the_shortcut_of_a_block_that_changes_shape_sees_the_activated_input():
    own = PreActivationBlock(1, 1, 2).eval()
    nn.init.zeros_(own.conv2.weight)
    nn.init.ones_(own.shortcut.weight)
    assert own(torch.full((1, 1, 4, 4), -1.0)).tolist() == torch.zeros(1, 1, 2, 2).tolist()
    torch.testing.assert_close(
        own(torch.ones(1, 1, 4, 4)), torch.ones(1, 1, 2, 2), atol=1e-5, rtol=0
    )


def test_the_map_is_normalised_and_activated_last():
    model = WideResNet(3, 10, 10, 1).train()
    features = model.forward_features(torch.randn(8, 3, 16, 16))
    assert features.shape == (8, 64, 4, 4)
    assert features.min() == 0
    # Half of a normal variable is cut off: the mean of what remains is 1 / sqrt(2 pi) = 0.399.
    assert features.mean().item() == pytest.approx(0.399, abs=0.03)
