"""The catalogue of networks: each has the published size, and a head that can be replaced."""

import importlib
import pkgutil

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import nn

from fedtables.models.catalogue import (
    DENSE,
    build,
    entry,
    features,
    find_head,
    network_digest,
    network_for,
    networks,
    noting_features,
    replace_head,
)
from fedtables.models.entry import ModelError
from fedtables.models.networks import __path__ as folder
from fedtables.results.files import digest

SCORES = sorted(name for name, declared in networks().items() if declared.makes == "scores")
EVERY = sorted({*networks()} - {"densenet121"})  # the code of densenet-small, and slow
EVERY += [name + DENSE for name in ("cnn", "densenet-tiny", "mobilenetv2-slim", "vgg11-slim")]


def parameters(model):
    return sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize(
    ("network", "classes", "count"),
    [
        ("resnet8-narrow", 10, 78_042),
        ("resnet8-narrow", 100, 83_892),
        ("resnet8-wide", 10, 4_911_754),
        ("resnet8-wide", 100, 5_096_164),
        ("resnet18", 10, 11_181_642),
        ("resnet34", 1000, 21_797_672),
        ("wrn-16-2", 10, 691_674),
        (
            "cnn",
            10,
            160 + 4640 + 131_136 + 650,
        ),  # of a 1 x 32 x 32 image: 9*16+16, 16*9*32+32, 2048*64+64, 64*10+10
    ],
)
def test_a_network_has_the_published_number_of_parameters(network, classes, count):
    with torch.device("meta"):
        assert parameters(build(network, 1 if network == "cnn" else 3, classes, 32)) == count


@pytest.mark.parametrize(
    ("network", "names", "drawn"),
    [
        ("cnn", "f1299c4a", -0.019588),
        ("cnn-small", "5341362a", -0.020250),
        ("resnet18", "3d6011e2", 0.022609),
        ("densenet121", "039a6ae6", -0.068824),
        ("densenet-small", "df939e33", -0.204808),
        ("densenet-tiny", "7e7d8e30", -0.333449),
        ("lenet-sigmoid", "2c95601e", 0.003821),
        ("resnet8-narrow", "340f6367", -0.161594),
        ("resnet8-narrow-gn", "a2789211", -0.161594),
        ("resnet8-wide", "dd84a870", 0.009332),
        ("resnet8-wide-gn", "bbca38aa", 0.009332),
    ],
)
def test_the_weights_that_results_were_computed_with_are_drawn_again(network, names, drawn):
    # Measured when encoder and decoder were still one: names and shapes, and the weights by their
    # place in the order of drawing.
    torch.manual_seed(7)
    model = build(network, 3, 10, 16)
    assert (
        digest([[name, list(tensor.shape)] for name, tensor in model.state_dict().items()])[:8]
        == names
    )
    means = [
        place * p.double().mean().item()
        for place, p in enumerate(model.parameters(), 1)
        if p.ndim > 1
    ]
    assert sum(means) == pytest.approx(drawn, abs=1e-5)


# -- what networks declare --


def taken(declared, steps):
    """Sides of an input: from the smallest that a network takes, so many `steps` larger."""
    first = -(-declared.smallest // declared.multiple)
    return tuple(declared.multiple * (first + step) for step in steps[: declared.dims])


@pytest.mark.parametrize("network", EVERY)
@given(
    steps=st.tuples(*[st.integers(0, 4)] * 3), channels=st.integers(1, 4), outputs=st.integers(1, 5)
)
@example(steps=(0, 0, 0), channels=1, outputs=1)
@settings(max_examples=2, deadline=None)
def test_a_network_makes_and_takes_what_it_declares(network, steps, channels, outputs):
    declared = entry(network)
    sides = taken(declared, steps)
    with torch.device("meta"):
        made = build(network, channels, outputs, sides)(torch.empty(2, channels, *sides))
    assert made.shape == (2, outputs, *(sides if declared.makes != "scores" else ()))


@pytest.mark.parametrize("network", EVERY)
def test_a_network_refuses_what_it_does_not_declare(network):
    declared = entry(network)
    first, *others = taken(declared, (0, 0, 0))
    wrong = [
        ((first - declared.multiple, *others), "takes sides from"),
        (others, "takes (images|volumes) of"),
        ((first, *others, 32), "takes (images|volumes) of"),
    ]
    if declared.multiple > 1:
        wrong.append(((first + 1, *others), "multiples of"))
    for sides, message in wrong:
        with pytest.raises(ModelError, match=message):
            build(network, 3, 2, sides)


@pytest.mark.parametrize(
    "network", [name for name, declared in networks().items() if declared.makes == "images"]
)
def test_images_lie_between_minus_one_and_one(network):
    images = build(network, 1, 2, 8)(100 * torch.randn(2, 1, 8, 8))
    assert images.abs().max() <= 1
    assert images.min() < 0 < images.max()


@pytest.mark.parametrize(
    ("name", "dense", "dims", "network"),
    [
        ("cnn", False, 2, "cnn"),
        ("cnn", True, 2, "cnn+dense"),
        ("cnn+dense", True, 2, "cnn+dense"),
        ("unet", True, 2, "unet"),
        ("segresnet-3d", True, 3, "segresnet-3d"),
    ],
)
def test_the_network_of_a_task(name, dense, dims, network):
    assert network_for(name, dense=dense, dims=dims) == network


@pytest.mark.parametrize(
    ("name", "dense", "dims", "message"),
    [
        ("unet", False, 2, "^unet makes maps, and the task needs scores; use cnn, cnn-small, d"),
        ("cnn+dense", False, 2, r"^cnn\+dense makes maps, .*; use cnn, cnn-small$"),
        ("resnet-generator", True, 2, "^resnet-generator makes images, .* needs maps; use cnn, "),
        ("segresnet-3d", True, 2, "takes volumes, and the data are images; use cnn, "),
        ("unet", True, 3, "takes images, and the data are volumes; use unet-3d, unet-narrow-3d$"),
        ("unett", True, 2, "^unknown network 'unett'; did you mean unet"),
    ],
)
def test_a_network_that_cannot_learn_a_task_is_refused_with_others(name, dense, dims, message):
    with pytest.raises(ModelError, match=message):
        network_for(name, dense=dense, dims=dims)


def test_no_two_files_have_a_network_of_one_name():
    files = (
        importlib.import_module(m.name)
        for m in pkgutil.iter_modules(folder, "fedtables.models.networks.")
    )
    assert sum(len(file.NETWORKS) for file in files) == len(networks())


@pytest.mark.parametrize("network", SCORES)
def test_every_classifier_takes_a_new_head_of_one_output(network):
    with torch.device("meta"):
        model = build(network, 3, 10, 16)
        assert replace_head(model, 1) is model
        assert model(torch.empty(2, 3, 16, 16)).shape == (2, 1)


@pytest.mark.parametrize("network", ["cnn-small", "cnn-small+dense"])
def test_a_new_head_leaves_the_rest_of_the_network_as_it_was(network):
    model = build(network, 1, 10, 8)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    after = replace_head(model, 2).state_dict()
    changed = {name for name in before if before[name].shape != after[name].shape}
    assert changed == {"head.weight", "head.bias"}
    assert all(torch.equal(before[name], after[name]) for name in before.keys() - changed)


def test_the_head_is_the_last_linear_layer_at_any_depth():
    model = nn.Sequential(nn.Linear(4, 5), nn.Sequential(nn.ReLU(), nn.Linear(5, 6)))
    replace_head(model, 3)
    assert (model[0].out_features, model[1][1].in_features, model[1][1].out_features) == (5, 5, 3)


def test_networks_of_one_file_share_a_digest_and_files_differ():
    digests = [network_digest(name) for name in ("resnet8-narrow", "resnet8-wide", "resnet18")]
    assert digests[0] == digests[1] != digests[2]


def test_a_projection_head_lies_between_encoder_and_last_layer():
    plain = build("cnn-small", 1, 3, 8)
    model = build("cnn-small+projection", 1, 3, 8)
    name, head = find_head(model)
    assert (head.in_features, head.out_features) == (256, 3)
    assert model(torch.zeros(2, 1, 8, 8)).shape == (2, 3)
    width = find_head(plain)[1].in_features
    added = (width + 1) * width + (width + 1) * 256 + (256 - width) * 3
    count = [sum(p.numel() for p in network.parameters()) for network in (plain, model)]
    assert count[1] - count[0] == added, name
    assert network_digest("cnn-small+projection") != network_digest("cnn-small")
    with pytest.raises(ModelError, match=r"leave \+projection off"):
        entry("unet-8-in+projection")


def test_features_are_what_the_last_layer_gets():
    model = build("cnn-small", 1, 3, 8)
    images = torch.rand(2, 1, 8, 8)
    found = features(model, images)
    torch.testing.assert_close(find_head(model)[1](found), model(images))
    with noting_features(model) as noted:
        assert noted() is None
        model(images)
        assert torch.equal(noted(), found)
    with pytest.raises(ModelError, match="no linear layer"):
        features(build("unet-8-in", 1, 2, 32), torch.rand(2, 1, 32, 32))
