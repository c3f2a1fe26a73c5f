"""MobileNetV2 from timm (Sandler et al. 2018), adapted to small images, and a slim one for reduced
profiles.

The adaptation for images below 64 pixels: the stem and the first stage with a stride run with
stride 1, so that 32 pixels leave a map of 4 x 4 and not of 1 x 1; weights keep their shapes.

Depthwise convolutions stay in float32 on a CPU: the gradient of theirs in bfloat16 takes so long
there that the slim network trained half as fast under autocast as without.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import torch
from torch import nn

from models.entry import NetworkEntry, Sides
from models.networks.imagenet import SMALL

if TYPE_CHECKING:
    from timm.models.efficientnet import EfficientNet

SLIM_WIDTH = 0.25
SLIM_FEATURES = 128
"""Channels of the slim form's last map, where the published width multipliers below 1 keep 1280."""


class DepthwiseConv2d(nn.Conv2d):
    """A convolution of every channel by itself, in float32 on a CPU, under autocast too."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        if features.device.type != "cpu":
            return super().forward(features)
        with torch.autocast("cpu", enabled=False):
            return super().forward(features.to(self.weight.dtype))


def _adapted(model: EfficientNet, sides: Sides) -> EfficientNet:
    if min(sides) < SMALL:
        model.conv_stem.stride = (1, 1)
        model.blocks[1][0].conv_dw.stride = (1, 1)
    for module in model.modules():
        if isinstance(module, nn.Conv2d) and module.groups > 1:
            module.__class__ = DepthwiseConv2d
    return model


def mobilenetv2(in_channels: int, num_classes: int, sides: Sides) -> nn.Module:
    """timm's MobileNetV2, with the small-image strides below 64 pixels."""
    import timm

    return _adapted(
        timm.create_model("mobilenetv2_100", num_classes=num_classes, in_chans=in_channels), sides
    )


def mobilenetv2_slim(in_channels: int, num_classes: int, sides: Sides) -> nn.Module:
    """A quarter of MobileNetV2's channels, half of its blocks in every stage (rounded up), and 128
    channels at the end.

    102,186 parameters for ten classes.
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
        num_features=SLIM_FEATURES,
        in_chans=in_channels,
        round_chs_fn=functools.partial(round_channels, multiplier=SLIM_WIDTH),
        act_layer=nn.ReLU6,
    )
    return _adapted(model, sides)


NETWORKS = {
    "mobilenetv2": NetworkEntry(mobilenetv2),
    "mobilenetv2-slim": NetworkEntry(mobilenetv2_slim),
}
