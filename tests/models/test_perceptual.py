"""Feature networks of the perceptual loss: the maps of VGG-16, the stand-ins, and distances."""

import pytest
import torch
from torch import nn
from torchvision.models.vgg import cfgs, make_layers

from models.perceptual import FeatureNetwork, feature_network, perceptual_distance
from models.weight_files import WeightFile
from results.files import DataError


class Halves(nn.Module):
    """The left and the right half of the first channel."""

    def forward(self, images):
        return images[:, :1, :, :2], images[:, :1, :, 2:]


def test_the_distance_is_the_mean_over_maps_of_the_mean_squared_difference():
    network = FeatureNetwork(Halves(), [0.5] * 3, [0.5] * 3)
    images, others = torch.zeros(2, 1, 1, 4), torch.zeros(2, 1, 1, 4)
    images[0, 0, 0] = torch.tensor([1.0, 0.5, 0.0, 0.5])
    # normalised they differ by 2 and 1 in the left half, by 0 and 1 in the right one
    distance = perceptual_distance(network, images, others)
    assert distance.tolist() == [((4 + 1) / 2 + (0 + 1) / 2) / 2, 0]


def test_the_maps_are_those_of_torchvisions_vgg16_before_its_poolings(monkeypatch):
    torch.manual_seed(0)
    theirs = make_layers(cfgs["D"]).eval()
    state = {f"features.{name}": tensor for name, tensor in theirs.state_dict().items()}
    state["classifier.0.bias"] = torch.zeros(1)
    monkeypatch.setattr(WeightFile, "read", lambda file: state)
    images = torch.rand(2, 3, 32, 24)
    normalised = (images - torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)) / torch.tensor(
        [0.229, 0.224, 0.225]
    ).view(3, 1, 1)
    with torch.no_grad():
        maps = feature_network("vgg16", 3)(images)
        for ours, last in zip(maps, (3, 8, 15, 22), strict=True):  # relu1_2, 2_2, 3_3 and 4_3
            assert torch.equal(ours, theirs[: last + 1](normalised))


def test_without_the_file_the_error_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("FEDTABLES_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"vgg16-397923af\.pth is absent\. Download"):
        feature_network("vgg16", 3)
    with torch.device("meta"):
        maps = feature_network("vgg16", 3)(torch.empty(2, 3, 64, 64))
    assert [tuple(m.shape[1:]) for m in maps] == [
        (64, 64, 64),
        (128, 32, 32),
        (256, 16, 16),
        (512, 8, 8),
    ]


@pytest.mark.parametrize("name", ["efficientnet-lite0", "vgg16-random"])
def test_a_stand_in_needs_no_file_is_not_trained_and_passes_gradients_on(name):
    network = feature_network(name, 3)
    assert not any(parameter.requires_grad for parameter in network.parameters())
    assert not network.training
    images = torch.rand(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    assert perceptual_distance(network, images, images).tolist() == [0, 0]
    moved = images.clone().requires_grad_()
    distance = perceptual_distance(network, moved, images.flip(0))
    assert (distance > 0).all()
    distance.sum().backward()
    assert moved.grad.abs().max() > 0


def test_no_map_of_the_random_stand_in_fades():
    torch.manual_seed(0)
    maps = feature_network("vgg16-random", 1)(torch.rand(4, 1, 32, 32))
    assert [m.shape[1] for m in maps] == [16, 32, 64, 128]
    assert all(0.3 < m.square().mean().sqrt() < 10 for m in maps)


def test_grey_images_are_three_equal_channels():
    network = feature_network("vgg16-random", 1)
    grey = torch.rand(2, 1, 16, 16)
    maps, same = network(grey), network(grey.expand(-1, 3, -1, -1))
    assert all(torch.equal(a, b) for a, b in zip(maps, same, strict=True))


def test_unknown_names_and_other_channels_are_refused():
    with pytest.raises(ValueError, match=r"unknown feature network 'vgg61'.*vgg16"):
        feature_network("vgg61", 3)
    with pytest.raises(ValueError, match="one or three channels, not 2"):
        feature_network("vgg16-random", 2)
