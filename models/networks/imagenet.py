"""Networks from timm, adapted to small images, slim ones for reduced profiles, and the ImageNet
weights of some when the user has them.

Images below 64 pixels:

- ResNets and DenseNets: the stem runs with stride 1, and the max-pooling after it is dropped. The 7
  x 7 convolution keeps its shape, so that ImageNet weights load unchanged.
- MobileNetV2 (Sandler et al. 2018): the stem and the first stage with a stride run with stride 1,
  so that 32 pixels leave a map of 4 x 4.
- VGG with BatchNorm (Simonyan and Zisserman 2015): max-poolings that would leave less than 2 x 2
  pixels are left out. One linear layer after global average pooling replaces the two of 4096
  channels.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from fedtables.models.entry import NetworkEntry, Sides
from fedtables.models.weight_files import IMAGENET
from fedtables.results.files import DataError

if TYPE_CHECKING:
    from timm.models.efficientnet import EfficientNet

SMALL = 64
"""Images with shorter sides are small."""


def load_imagenet(model: nn.Module, network: str) -> None:
    """Load everything of the ImageNet weights but the head into `model`, summing the stem over
    channels if grey. Raises DataError for weights that are absent, damaged or of another network.
    """
    from timm.models.densenet import _filter_torchvision_pretrained

    state = _filter_torchvision_pretrained(IMAGENET[network].read())
    own = {
        name: value
        for name, value in model.state_dict().items()
        if not name.startswith(("fc.", "classifier."))
    }
    stem = next(name for name, value in own.items() if value.ndim == 4)
    if own[stem].shape[1] == 1:
        state[stem] = state[stem].sum(dim=1, keepdim=True)
    body = {
        name: state[name]
        for name, value in own.items()
        if name in state and state[name].shape == value.shape
    }
    absent = [name for name in own if name not in body and "num_batches_tracked" not in name]
    if absent:
        raise DataError(
            f"the ImageNet weights do not fit {network}: {', '.join(absent[:3])} are missing"
        )
    model.load_state_dict(body, strict=False)


def _create(name: str, in_channels: int, num_classes: int) -> Any:
    import timm

    return timm.create_model(name, num_classes=num_classes, in_chans=in_channels)


def resnet(name: str, in_channels: int, num_classes: int, sides: Sides) -> nn.Module:
    """timm's ResNet of that name, with the small-image stem below 64 pixels."""
    model = _create(name, in_channels, num_classes)
    if min(sides) < SMALL:
        model.conv1.stride = (1, 1)
        model.maxpool = nn.Identity()
    return model


def densenet121(in_channels: int, num_classes: int, sides: Sides) -> nn.Module:
    """timm's DenseNet-121, with the small-image stem below 64 pixels."""
    model = _create("densenet121", in_channels, num_classes)
    if min(sides) < SMALL:
        model.features.conv0.stride = (1, 1)
        model.features.pool0 = nn.Identity()
    return model


def small_densenet(in_channels: int, num_classes: int, blocks: tuple[int, ...]) -> nn.Module:
    """A DenseNet for reduced profiles: `blocks` layers per block, growth rate 8, 3 x 3 stem."""
    from timm.models.densenet import DenseNet

    model = DenseNet(
        growth_rate=8, block_config=blocks, num_classes=num_classes, in_chans=in_channels
    )
    model.features.conv0 = nn.Conv2d(in_channels, 16, 3, 1, 1, bias=False)
    model.features.pool0 = nn.Identity()
    return model


class DepthwiseConv2d(nn.Conv2d):
    """A convolution of every channel by itself, in float32 on a CPU, under autocast too: its
    gradient in bfloat16 takes long there.
    """

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        if features.device.type != "cpu":
            return super().forward(features)
        with torch.autocast("cpu", enabled=False):
            return super().forward(features.to(self.weight.dtype))


def _adapted(model: EfficientNet, sides: Sides) -> EfficientNet:
    """A MobileNetV2 with the small-image strides below 64 pixels."""
    if min(sides) < SMALL:
        model.conv_stem.stride = (1, 1)
        model.blocks[1][0].conv_dw.stride = (1, 1)
    for module in model.modules():
        if isinstance(module, nn.Conv2d) and module.groups > 1:
            module.__class__ = DepthwiseConv2d
    return model


def mobilenetv2_slim(in_channels: int, num_classes: int, sides: Sides) -> nn.Module:
    """A quarter of MobileNetV2's channels, half of its blocks in every stage (rounded up), and 128
    channels at the end: 102,186 parameters for ten classes.
    """
    from timm.models._efficientnet_builder import decode_arch_def, round_channels
    from timm.models.efficientnet import EfficientNet

    # Stages as in table 2 of the paper: repetitions r, kernel k, stride s, expansion e, channels c.
    stages = [
        ["ds_r1_k3_s1_c16"],
        ["ir_r2_k3_s2_e6_c24"],
        ["ir_r3_k3_s2_e6_c32"],
        ["ir_r4_k3_s2_e6_c64"],
        ["ir_r3_k3_s1_e6_c96"],
        ["ir_r3_k3_s2_e6_c160"],
        ["ir_r1_k3_s1_e6_c320"],
    ]
    model = EfficientNet(
        decode_arch_def(stages, depth_multiplier=0.5),
        num_classes=num_classes,
        num_features=128,
        in_chans=in_channels,
        round_chs_fn=functools.partial(round_channels, multiplier=0.25),
        act_layer=nn.ReLU6,
    )
    return _adapted(model, sides)


Layers = list[int | str]
"""As in timm: output channels of a convolution, or `M` for max-pooling."""


def poolings_that_fit(layers: Layers, sides: Sides) -> Layers:
    """`layers` without the poolings that would leave a map with sides below 2."""
    kept: Layers = []
    side = min(sides)
    for layer in layers:
        if layer == "M":
            if side < 4:
                continue
            side //= 2
        kept.append(layer)
    return kept


def small_vgg(in_channels: int, num_classes: int, sides: Sides, layers: Layers) -> nn.Module:
    """timm's VGG with BatchNorm of `layers`, with the small-image poolings and head."""
    from timm.layers import ClassifierHead
    from timm.models.vgg import VGG

    # mlp_ratio: the 4096 channels are replaced at once, and drawing 100 million random weights for
    # them takes a second.
    fitting = poolings_that_fit(layers, sides)
    model = VGG(fitting, 1, in_channels, mlp_ratio=1 / 4096, norm_layer=nn.BatchNorm2d)
    model.pre_logits = nn.Identity()
    model.head = ClassifierHead(model.num_features, num_classes)
    return model


def vgg19(in_channels: int, num_classes: int, sides: Sides) -> nn.Module:
    """timm's VGG-19 with BatchNorm, with the small-image poolings and head below 64 pixels."""
    from timm.models.vgg import cfgs

    if min(sides) < SMALL:
        return small_vgg(in_channels, num_classes, sides, cfgs["vgg19"])
    return _create("vgg19_bn", in_channels, num_classes)


def vgg11_slim(in_channels: int, num_classes: int, sides: Sides) -> nn.Module:
    """VGG-11 with a quarter of the channels, adapted at any size."""
    from timm.models.vgg import cfgs

    slim: Layers = [layer if isinstance(layer, str) else layer // 4 for layer in cfgs["vgg11"]]
    return small_vgg(in_channels, num_classes, sides, slim)


NETWORKS = {
    "resnet18": NetworkEntry(lambda c, k, s: resnet("resnet18", c, k, s)),
    "resnet34": NetworkEntry(lambda c, k, s: resnet("resnet34", c, k, s)),
    "densenet121": NetworkEntry(densenet121, smallest=8),
    "densenet-small": NetworkEntry(lambda c, k, s: small_densenet(c, k, (2, 2, 2))),
    "densenet-tiny": NetworkEntry(lambda c, k, s: small_densenet(c, k, (1, 1))),
    "mobilenetv2": NetworkEntry(lambda c, k, s: _adapted(_create("mobilenetv2_100", c, k), s)),
    "mobilenetv2-slim": NetworkEntry(mobilenetv2_slim),
    "vgg19": NetworkEntry(vgg19),
    "vgg11-slim": NetworkEntry(vgg11_slim),
}
