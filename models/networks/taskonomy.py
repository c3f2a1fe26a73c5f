"""The encoder of Taskonomy's networks (Zamir et al. 2018).

A ResNet-50 that strides in the last block of a stage, not the first, and in its first two stages
alone, and a last convolution to eight channels: 256 pixels leave a map of 8 x 16 x 16. Layers and
names are those of the authors' PyTorch release (alexsax/visual-prior). It takes images scaled to
[-1, 1].
"""

import torch
import torch.nn.functional as F
from torch import nn
from torchvision.models.resnet import Bottleneck

from fedtables.models.cut import Halved, pooled
from fedtables.models.entry import NetworkEntry, Sides

CHANNELS = 8
"""Of the encoder's map."""
POOLED = 4
"""Side of the map before the linear head, which is ours: the release has none."""


def bottleneck(in_channels: int, channels: int, stride: int = 1) -> Bottleneck:
    """torchvision's block, with a shortcut of its own: a 1 x 1 convolution where the channels
    change, which leaves pixels out where there is a stride.
    """
    block = Bottleneck(in_channels, channels, stride)
    layers: list[nn.Module] = []
    if in_channels != 4 * channels:
        conv = nn.Conv2d(in_channels, 4 * channels, 1, bias=False)
        layers = [conv, nn.BatchNorm2d(4 * channels)]
    if stride != 1:
        layers.append(nn.MaxPool2d(1, stride))
    block.downsample = nn.Sequential(*layers)
    return block


def _stage(in_channels: int, channels: int, blocks: int, stride: int = 1) -> nn.Sequential:
    before = [in_channels, *[4 * channels] * (blocks - 1)]
    strides = [*[1] * (blocks - 1), stride]
    return nn.Sequential(
        *(bottleneck(b, channels, s) for b, s in zip(before, strides, strict=True))
    )


class TaskonomyResNet50(Halved):
    """Images (n, in_channels, h, w) to a map (n, 8, h / 16, w / 16), and to scores."""

    def __init__(self, in_channels: int, num_classes: int, sides: Sides):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.layer1 = _stage(64, 64, 3, stride=2)
        self.layer2 = _stage(256, 128, 4, stride=2)
        self.layer3 = _stage(512, 256, 6)
        self.layer4 = _stage(1024, 512, 3)
        self.compress1 = nn.Conv2d(2048, CHANNELS, 3, 1, 1, bias=False)
        self.compress_bn = nn.BatchNorm2d(CHANNELS)
        height, width = (min(POOLED, -(-side // 16)) for side in sides)
        self.pooled = (height, width)
        self.head = nn.Linear(CHANNELS * height * width, num_classes)

    def forward_features(self, images: torch.Tensor) -> torch.Tensor:
        maps = self.maxpool(F.relu(self.bn1(self.conv1(images))))
        maps = self.layer4(self.layer3(self.layer2(self.layer1(maps))))
        return F.relu(self.compress_bn(self.compress1(maps)))

    def forward_head(self, features: torch.Tensor) -> torch.Tensor:
        return super().forward_head(pooled(features, self.pooled).flatten(1))


NETWORKS = {"taskonomy-resnet50": NetworkEntry(TaskonomyResNet50)}
