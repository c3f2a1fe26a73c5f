"""Networks with outputs for every pixel: an encoder of the catalogue and a decoder that enlarges
its map.
"""

import pytest
import torch
from torch import nn

from fedtables.models.catalogue import build, find_head, network_digest
from fedtables.models.dense import WIDTH, enlargements
from fedtables.models.entry import ModelError


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ((2, 2), (16, 16), [(4, 4), (8, 8), (16, 16)]),
        ((4, 4), (28, 28), [(7, 7), (14, 14), (28, 28)]),
        ((3, 3), (28, 28), [(4, 4), (7, 7), (14, 14), (28, 28)]),
        ((8, 8), (8, 8), []),
        ((1, 1), (2, 2), [(2, 2)]),
        ((16, 16), (256, 256), [(32, 32), (64, 64), (128, 128), (256, 256)]),
        ((2, 4), (8, 16), [(4, 8), (8, 16)]),
        ((3, 2), (12, 3), [(6, 2), (12, 3)]),
    ],
)
def test_a_map_at_most_doubles_from_layer_to_layer(start, end, expected):
    assert enlargements(start, end) == expected


def test_the_encoder_is_the_networks_own():
    torch.manual_seed(0)
    network = build("resnet8-narrow", 3, 1, 8).eval()
    torch.manual_seed(0)
    dense = build("resnet8-narrow+dense", 3, 5, 8).eval()
    images = torch.rand(2, 3, 8, 8)
    assert torch.equal(dense.forward_features(images), network.forward_features(images))
    assert dense.train().encoder.bn.num_batches_tracked == 0


@pytest.mark.parametrize(
    "name", ["cnn-small", "resnet18", "vgg11-slim", "mobilenetv2-slim", "densenet-tiny"]
)
def test_nothing_is_left_of_the_networks_decoder(name):
    model = build(f"{name}+dense", 3, 5, 8)
    assert not [module for module in model.modules() if isinstance(module, nn.Linear)]
    model(torch.rand(4, 3, 8, 8)).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_the_parameters_of_the_decoder_by_hand():
    # From 64 channels at 4 x 4 to 16 x 16, that is by two doublings, to three outputs.
    model = build("resnet8-narrow+dense", 3, 3, 16)
    decoder = sum(p.numel() for p in [*model.decoder.parameters(), *model.head.parameters()])
    assert decoder == (64 * WIDTH + 2 * WIDTH) + 2 * (9 * WIDTH**2 + 2 * WIDTH) + (3 * WIDTH + 3)


def test_there_is_no_linear_head_to_find():
    with pytest.raises(
        ValueError, match="no linear layer; one with outputs for every pixel ends in a convolution"
    ):
        find_head(build("cnn-small+dense", 1, 4, 8))


def test_the_digest_covers_both_the_encoder_and_the_decoder():
    names = ("cnn", "cnn+dense", "resnet18", "resnet18+dense")
    assert len({network_digest(name) for name in names}) == 4
    assert network_digest("cnn+dense") == network_digest("cnn-small+dense")


def test_what_makes_maps_needs_no_suffix():
    with pytest.raises(ModelError, match=r"^unet makes maps by itself; leave \+dense off$"):
        build("unet+dense", 3, 10, 32)
