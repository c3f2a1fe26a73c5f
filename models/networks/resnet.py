"""Residual networks for small images: a 3 x 3 stem and one block per stage.

Two published networks are called ResNet-8; they differ by a factor of 63 in size. `narrow` is the
CIFAR ResNet with one block per stage and 16-32-64 channels (FedDF, Lin et al. 2020): 78,042
parameters for ten classes. `wide` has 128-256-512 channels and keeps a 2 x 2 map before its head
(FedKD, Gong et al. 2022, and FedIOD, Gong et al. 2024): 4,911,754 parameters for ten classes. The
`-gn` ones have GroupNorm for BatchNorm. `resnet10-slim` has the four stages and ten layers of a
ResNet-10 with 16-32-64-128 channels, for reduced profiles: 308,826 parameters for ten classes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from models.entry import NetworkEntry

Norm = Callable[[int], nn.Module]
"""Takes the number of channels."""


def group_norm(channels: int) -> nn.Module:
    """Groups of eight channels: normalises every sample by itself, which training by DP-SGD
    needs.
    """
    return nn.GroupNorm(channels // 8, channels)


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions and a shortcut, which is a 1 x 1 convolution where the shape
    changes.
    """

    def __init__(self, in_channels: int, channels: int, stride: int, norm: Norm = nn.BatchNorm2d):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, channels, 3, stride, 1, bias=False)
        self.bn1 = norm(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = norm(channels)
        self.shortcut = (
            nn.Sequential(nn.Conv2d(in_channels, channels, 1, stride, bias=False), norm(channels))
            if stride != 1 or in_channels != channels
            else nn.Identity()
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(out + self.shortcut(x))


class MeanOfQuarters(nn.Module):
    """Maps (n, c, h, w) to the means of their quarters, (n, c, 2, 2); those of an odd side share
    its middle.

    These are the values of AdaptiveAvgPool2d(2), whose gradient CUDA sums in another order in every
    run. Sides from 2.
    """

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        height, width = maps.shape[2:]
        return F.avg_pool2d(maps, (-(-height // 2), -(-width // 2)), (height // 2, width // 2))


class ResNet(nn.Module):
    """A 3 x 3 stem, one block per entry of `channels` with strides 1, 2, 2, ..., pooling to
    `pooled` x `pooled`, a linear head.

    Images (n, in_channels, s, s) to a map (n, channels[-1], h, h), halved len(channels) - 1 times,
    and to scores (n, num_classes).
    """

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        channels: tuple[int, ...],
        pooled: int = 1,
        norm: Norm = nn.BatchNorm2d,
    ):
        super().__init__()
        first = channels[0]
        self.conv = nn.Conv2d(in_channels, first, 3, 1, 1, bias=False)
        self.bn = norm(first)
        self.stages = nn.Sequential(
            BasicBlock(first, first, 1, norm),
            *(BasicBlock(narrow, wide, 2, norm) for narrow, wide in itertools.pairwise(channels)),
        )
        self.pool = MeanOfQuarters() if pooled == 2 else nn.AdaptiveAvgPool2d(pooled)
        self.head = nn.Linear(channels[-1] * pooled**2, num_classes)

    def forward_features(self, images: torch.Tensor) -> torch.Tensor:
        maps: torch.Tensor = self.stages(F.relu(self.bn(self.conv(images))))
        return maps

    def forward_head(self, features: torch.Tensor) -> torch.Tensor:
        outputs: torch.Tensor = self.head(self.pool(features).flatten(1))
        return outputs

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.forward_head(self.forward_features(images))


NETWORKS = {
    "resnet8-narrow": NetworkEntry(lambda c, k, s: ResNet(c, k, (16, 32, 64))),
    "resnet8-narrow-gn": NetworkEntry(lambda c, k, s: ResNet(c, k, (16, 32, 64), norm=group_norm)),
    "resnet8-wide": NetworkEntry(
        lambda c, k, s: ResNet(c, k, (128, 256, 512), pooled=2), smallest=5
    ),
    "resnet8-wide-gn": NetworkEntry(
        lambda c, k, s: ResNet(c, k, (128, 256, 512), pooled=2, norm=group_norm), smallest=5
    ),
    "resnet10-slim": NetworkEntry(lambda c, k, s: ResNet(c, k, (16, 32, 64, 128))),
}
