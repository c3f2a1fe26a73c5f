"""VGG with BatchNorm from timm (Simonyan and Zisserman 2015), adapted to small images, and a slim
one for reduced profiles.

The adaptation for images below 64 pixels: max-poolings that would leave less than 2 x 2 pixels are
left out (of 32 pixels that is the last of five, of 16 the last two), and one linear layer after
global average pooling replaces the two of 4096 channels, which were made for a map of 7 x 7.
"""

from __future__ import annotations

from torch import nn

from models.entry import NetworkEntry, Sides
from models.networks.imagenet import SMALL

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
    model = VGG(
        poolings_that_fit(layers, sides),
        1,
        in_channels,
        mlp_ratio=1 / 4096,
        norm_layer=nn.BatchNorm2d,
    )
    model.pre_logits = nn.Identity()
    model.head = ClassifierHead(model.num_features, num_classes)
    return model


def vgg19(in_channels: int, num_classes: int, sides: Sides) -> nn.Module:
    """timm's VGG-19 with BatchNorm, with the small-image poolings and head below 64 pixels."""
    import timm
    from timm.models.vgg import cfgs

    if min(sides) < SMALL:
        return small_vgg(in_channels, num_classes, sides, cfgs["vgg19"])
    return timm.create_model("vgg19_bn", num_classes=num_classes, in_chans=in_channels)


def vgg11_slim(in_channels: int, num_classes: int, sides: Sides) -> nn.Module:
    """VGG-11 with a quarter of the channels, 16 to 128, and the small-image poolings and head at
    any size.
    """
    from timm.models.vgg import cfgs

    slim: Layers = [layer if isinstance(layer, str) else layer // 4 for layer in cfgs["vgg11"]]
    return small_vgg(in_channels, num_classes, sides, slim)


NETWORKS = {"vgg19": NetworkEntry(vgg19), "vgg11-slim": NetworkEntry(vgg11_slim)}
