"""ImageNet networks: the stem for small images, and weights that are checked before they are
used.
"""

import os

import pytest
import timm
import torch
from torch import nn

from datasets.source import DataError
from models.networks import imagenet
from models.networks.imagenet import (
    densenet121,
    load_imagenet,
    read_weights,
    resnet18,
    resnet34,
    weight_path,
)
from models.weight_files import WeightFile
from results.files import file_digest

URL = "https://example.invalid/w.pth"


def weight_file(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(content, path)
    return WeightFile(path.name, URL, file_digest(path)[:8])


def test_absent_weights_are_refused_naming_file_and_address(tmp_path):
    with pytest.raises(DataError, match=rf"w\.pth is absent\. Download {URL}"):
        read_weights(tmp_path / "w.pth", WeightFile("w.pth", URL, "00000000"))


def test_damaged_weights_are_refused_before_they_are_read(tmp_path):
    expected = weight_file(tmp_path / "w.pth", {"a": torch.ones(2)})
    raw = bytearray((tmp_path / "w.pth").read_bytes())
    raw[len(raw) // 2] ^= 1
    (tmp_path / "w.pth").write_bytes(raw)
    with pytest.raises(
        DataError, match=rf"does not begin with {expected.sha256_head}\. Download it again"
    ):
        read_weights(tmp_path / "w.pth", expected)


def test_whole_weights_are_read(tmp_path):
    expected = weight_file(tmp_path / "w.pth", {"a": torch.ones(2)})
    assert torch.equal(read_weights(tmp_path / "w.pth", expected)["a"], torch.ones(2))


class RunsACommand:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (self.path,))


def test_weights_with_code_in_them_are_refused_and_the_code_not_run(tmp_path):
    expected = weight_file(tmp_path / "w.pth", {"a": RunsACommand(str(tmp_path / "executed"))})
    with pytest.raises(DataError, match=r"w\.pth"):
        read_weights(tmp_path / "w.pth", expected)
    assert not (tmp_path / "executed").exists()


def test_a_file_with_the_right_digest_that_holds_no_weights_is_refused(tmp_path):
    path = tmp_path / "w.pth"
    path.write_bytes(b"<html>not found</html>")
    with pytest.raises(DataError, match=r"w\.pth"):
        read_weights(path, WeightFile("w.pth", URL, file_digest(path)[:8]))


def test_weights_are_looked_for_in_the_data_home(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDTABLES_DATA", str(tmp_path))
    assert weight_path("resnet18") == tmp_path / "weights" / "resnet18-f37072fd.pth"


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Puts a state dict where the suite looks for a network's ImageNet weights."""

    def put(network, state):
        monkeypatch.setenv("FEDTABLES_DATA", str(tmp_path))
        expected = weight_file(tmp_path / "weights" / imagenet.IMAGENET[network].name, state)
        monkeypatch.setitem(imagenet.IMAGENET, network, expected)

    return put


@pytest.fixture(scope="module")
def official():
    """A ResNet-18 as torchvision saves it: 1000 classes, three channels."""
    torch.manual_seed(0)
    return timm.create_model("resnet18").state_dict()


def test_everything_but_the_head_is_loaded(install, official):
    install("resnet18", official)
    model = resnet18(3, 10, (32, 32))
    head = model.fc.weight.clone()
    load_imagenet(model, "resnet18")
    loaded = model.state_dict()
    assert all(
        torch.equal(loaded[name], value)
        for name, value in official.items()
        if not name.startswith("fc.")
    )
    assert torch.equal(model.fc.weight, head)


def test_the_head_stays_random_even_with_as_many_classes_as_imagenet(install, official):
    install("resnet18", official)
    model = resnet18(3, 1000, (32, 32))
    head = model.fc.weight.clone()
    load_imagenet(model, "resnet18")
    assert torch.equal(model.fc.weight, head)


def test_a_grey_stem_holds_the_sum_over_colours(install, official):
    install("resnet18", official)
    model = resnet18(1, 10, (28, 28))
    load_imagenet(model, "resnet18")
    expected = (
        official["conv1.weight"][:, 0:1]
        + official["conv1.weight"][:, 1:2]
        + official["conv1.weight"][:, 2:3]
    )
    torch.testing.assert_close(model.conv1.weight.detach(), expected)


def test_a_grey_image_gives_what_three_equal_channels_would(install, official):
    install("resnet18", official)
    grey, colour = resnet18(1, 10, (28, 28)).eval(), resnet18(3, 10, (28, 28)).eval()
    load_imagenet(grey, "resnet18")
    load_imagenet(colour, "resnet18")
    image = torch.rand(1, 1, 28, 28)
    with torch.no_grad():
        torch.testing.assert_close(
            grey.forward_features(image), colour.forward_features(image.expand(1, 3, 28, 28))
        )


def test_densenet_weights_load_under_torchvisions_old_names(install):
    torch.manual_seed(1)
    state = timm.create_model("densenet121").state_dict()
    old = {
        name.replace(".norm1.", ".norm.1.").replace(".conv1.", ".conv.1."): value
        for name, value in state.items()
    }
    assert set(old) != set(state)
    install("densenet121", old)
    model = densenet121(3, 10, (32, 32))
    load_imagenet(model, "densenet121")
    name = "features.denseblock1.denselayer1.conv1.weight"
    assert torch.equal(model.state_dict()[name], state[name])


def test_weights_of_another_network_are_refused(install, official):
    install(
        "resnet18",
        {name: value for name, value in official.items() if not name.startswith("layer3.")},
    )
    with pytest.raises(DataError, match=r"do not fit resnet18: layer3\.0\.conv1\.weight"):
        load_imagenet(resnet18(3, 10, (32, 32)), "resnet18")


@pytest.mark.parametrize(
    ("side", "stride", "map_side"), [(32, 1, 4), (63, 1, 8), (64, 2, 2), (224, 2, 7)]
)
@pytest.mark.parametrize("network", [resnet18, resnet34])
def test_small_images_run_through_a_stem_without_stride_or_pooling(network, side, stride, map_side):
    with torch.device("meta"):
        model = network(3, 10, (side, side))
        assert model.conv1.stride == (stride, stride)
        assert isinstance(model.maxpool, nn.Identity) == (side < 64)
        assert model.forward_features(torch.empty(1, 3, side, side)).shape == (
            1,
            512,
            map_side,
            map_side,
        )


def test_densenet_takes_the_same_stem():
    with torch.device("meta"):
        small, large = densenet121(3, 10, (32, 32)), densenet121(3, 10, (224, 224))
        assert small.forward_features(torch.empty(1, 3, 32, 32)).shape == (1, 1024, 4, 4)
        assert large.forward_features(torch.empty(1, 3, 224, 224)).shape == (1, 1024, 7, 7)
