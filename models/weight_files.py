"""Files of pre-trained weights that a user may put into the data home.

Imports no framework: which network measures a table's images is part of its cells, and a command
that finds them all finished has no other use for torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from results.files import data_home


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


INCEPTION = WeightFile(
    "inception_v3_google-0cc3c7bd.pth",
    "https://download.pytorch.org/models/inception_v3_google-0cc3c7bd.pth",
    "0cc3c7bd",
)
"""torchvision's Inception-v3."""


def default_extractor(embedded: bool) -> str:
    """The extractor to use: Inception-v3 if the user put its file there, else EfficientNet-Lite0.

    `embedded` asks for what is the same on every machine, and so never for a file of the user's.
    """
    return "inception-v3" if not embedded and INCEPTION.path.exists() else "efficientnet-lite0"
