"""Networks whose features a perceptual loss compares (Johnson, Alahi and Fei-Fei 2016), by name.

`vgg16` is that of the paper: torchvision's ImageNet weights, a file that the user puts there. In
its place there are `efficientnet-lite0`, whose ImageNet weights come as a package, and
`vgg16-random`, the layers of VGG-16 with a quarter of the channels and random weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import timm
import torch
from torch import Tensor, nn
from torchvision.models.feature_extraction import create_feature_extractor
from torchvision.models.vgg import make_layers

from models.extractors import RECIPES
from models.weight_files import torchvisions
from results.names import near

VGG16 = torchvisions("vgg16-397923af.pth")
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
    recipe = RECIPES["efficientnet-lite0"]
    if not next(network.parameters()).is_meta:
        state = recipe.network(recipe.path()).state_dict()
        network.load_state_dict({name: state[name] for name in network.state_dict()})
    _, centre, scale = recipe.prepare
    return FeatureNetwork(network, [centre / 255] * 3, [scale / 255] * 3)


NETWORKS: dict[str, Callable[[], FeatureNetwork]] = {
    "vgg16": _vgg16,
    "efficientnet-lite0": _lite0,
    "vgg16-random": _vgg16_random,
}


def feature_network(name: str, channels: int) -> FeatureNetwork:
    """The feature network `name` for images of `channels`, frozen; random weights are torch's. On
    `meta` no file is read. Raises ValueError for an unknown name and other channels than one or
    three, DataError if weights are absent or damaged.
    """
    if name not in NETWORKS:
        raise ValueError(f"unknown feature network {name!r}; {near(name, NETWORKS)}")
    if channels not in (1, 3):
        raise ValueError(f"{name} takes images of one or three channels, not {channels}")
    return NETWORKS[name]().eval().requires_grad_(False)


def perceptual_distance(network: FeatureNetwork, images: Tensor, others: Tensor) -> Tensor:
    """The feature reconstruction loss of Johnson et al. (2016), Eq. 2, of each image (n, c, h, w)
    in [0, 1] and another, (n,): the mean squared difference of their features, mean over the maps.
    """
    pairs = zip(network(images), network(others), strict=True)
    return torch.stack([(a - b).square().flatten(1).mean(dim=1) for a, b in pairs]).mean(dim=0)
