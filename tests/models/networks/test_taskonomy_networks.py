"""Taskonomy's encoder: the released layout."""

import pytest
import torch

from fedtables.models.networks.taskonomy import Bottleneck, TaskonomyResNet50, bottleneck


@pytest.fixture(scope="module")
def released():
    """The encoder's tensors as the authors' file has them: without a head, and without BatchNorm's
    counters.
    """
    torch.manual_seed(0)
    state = TaskonomyResNet50(3, 10, (256, 256)).state_dict()
    return {
        n: t
        for n, t in state.items()
        if not n.startswith("head.") and not n.endswith("num_batches_tracked")
    }


def test_the_tensors_are_those_of_the_release(released):
    # Of a ResNet-50 without its linear layer 265: 53 convolutions, 53 BatchNorms of four; and of
    # the convolution to 8 channels 5.
    assert len(released) == 53 + 53 * 4 + 5
    shapes = {name: tuple(released[name].shape) for name in released}
    assert shapes["conv1.weight"] == (64, 3, 7, 7)
    assert shapes["layer1.0.downsample.0.weight"] == (256, 64, 1, 1)
    assert shapes["layer2.3.conv2.weight"] == (128, 128, 3, 3)
    assert shapes["layer4.0.downsample.1.running_var"] == (2048,)
    assert shapes["compress1.weight"] == (8, 2048, 3, 3)
    assert (
        "layer1.2.downsample.0.weight" not in shapes
    )  # the last block of a stage leaves pixels out, without a convolution


def test_the_stride_is_in_the_last_block_of_the_first_two_stages():
    model = TaskonomyResNet50(3, 10, (32, 32))
    strided = [
        name
        for name, module in model.named_modules()
        if isinstance(module, Bottleneck) and module.conv2.stride == (2, 2)
    ]
    assert strided == ["layer1.2", "layer2.3"]


def test_a_blocks_shortcut_leaves_out_every_other_pixel():
    block = bottleneck(8, 2, stride=2).eval()
    torch.nn.init.zeros_(block.bn3.weight)
    inputs = torch.rand(1, 8, 4, 4)
    assert torch.equal(block(inputs), inputs[:, :, ::2, ::2])


def test_the_encoder_is_a_resnet_50_and_a_convolution_to_eight_channels(released):
    trained = sum(t.numel() for n, t in released.items() if "running" not in n)
    assert (
        trained == 25_557_032 - 2_049_000 + 9 * 2048 * 8 + 2 * 8
    )  # torchvision's number, without its linear layer
