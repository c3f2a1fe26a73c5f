"""The two published networks called ResNet-8; they differ by a factor of 63 in size.

`narrow` is the CIFAR ResNet with one block per stage and 16-32-64 channels (FedDF, Lin et al. 2020): 78,042
parameters for ten classes. `wide` has 128-256-512 channels and keeps a 2 x 2 map before its head (FedKD, Gong et
al. 2022, and FedIOD, Gong et al. 2024): 4,911,754 parameters for ten classes. The `-gn` ones have GroupNorm for BatchNorm.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

Norm = Callable[[int], nn.Module]
"""Takes the number of channels."""


def group_norm(channels: int) -> nn.Module:
    """Groups of eight channels: normalises every sample by itself, which training by DP-SGD needs."""
    return nn.GroupNorm(channels // 8, channels)


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions and a shortcut, which is a 1 x 1 convolution where the shape changes."""

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
    """Maps (n, c, h, w) to the means of their quarters, (n, c, 2, 2); those of an odd side share its middle.

    These are the values of AdaptiveAvgPool2d(2), whose gradient CUDA sums in another order in every run. Sides from 2.
    """

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        height, width = maps.shape[2:]
        return F.avg_pool2d(maps, (-(-height // 2), -(-width // 2)), (height // 2, width // 2))


class ResNet8(nn.Module):
    """A 3 x 3 stem, three stages of one block with strides 1, 2, 2, pooling to `pooled` x `pooled`, a linear head."""

    def __init__(
        self, in_channels: int, num_classes: int, channels: tuple[int, int, int], pooled: int, norm: Norm = nn.BatchNorm2d
    ):
        super().__init__()
        first, second, third = channels
        self.conv = nn.Conv2d(in_channels, first, 3, 1, 1, bias=False)
        self.bn = norm(first)
        self.stages = nn.Sequential(
            BasicBlock(first, first, 1, norm), BasicBlock(first, second, 2, norm), BasicBlock(second, third, 2, norm)
        )
        self.pool = MeanOfQuarters() if pooled == 2 else nn.AdaptiveAvgPool2d(pooled)
        self.head = nn.Linear(third * pooled**2, num_classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        maps = self.stages(F.relu(self.bn(self.conv(images))))
        return self.head(self.pool(maps).flatten(1))


NETWORKS = {
    "resnet8-narrow": lambda c, k, s: ResNet8(c, k, (16, 32, 64), pooled=1),
    "resnet8-narrow-gn": lambda c, k, s: ResNet8(c, k, (16, 32, 64), pooled=1, norm=group_norm),
    "resnet8-wide": lambda c, k, s: ResNet8(c, k, (128, 256, 512), pooled=2),
    "resnet8-wide-gn": lambda c, k, s: ResNet8(c, k, (128, 256, 512), pooled=2, norm=group_norm),
}
