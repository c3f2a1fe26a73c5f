"""Small networks for small images, written here; each offers encoder and decoder
(`fedtables.models.cut`).

- `cnn` and `cnn-small`: two convolutions, for reduced profiles.
- `lenet-sigmoid`: the LeNet of "Deep Leakage from Gradients" (Zhu, Liu and Han 2019), with sigmoids
  for ReLUs and strides for pooling, since gradient attacks need second derivatives.
- `resnet8-narrow`: the CIFAR ResNet with one block per stage (FedDF, Lin et al. 2020), 78,042
  parameters for ten classes; `resnet8-wide`, with 128-256-512 channels and a 2 x 2 map before its
  head (FedKD, Gong et al. 2022, and FedIOD, Gong et al. 2024), 4,911,754. Either is called ResNet-8
  in print. `-gn` has GroupNorm for BatchNorm.
- `resnet10-slim`: the four stages of a ResNet-10 with 16-32-64-128 channels, for reduced profiles.
- `wrn-16-2` and `wrn-10-1`: wide residual networks (Zagoruyko and Komodakis 2016), whose blocks
  normalise and activate before their convolutions. WRN-16-2 has 691,674 parameters.
- `unchanged`: the input times a factor, a floor for what maps images to images.
"""

import itertools
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from fedtables.models.cut import Halved
from fedtables.models.entry import NetworkEntry, Sides

CONVOLUTIONAL = 6
"""Layers of `features` before the map is flattened."""


class CNN(Halved):
    """Two 3 x 3 convolutions with 2 x 2 max-pooling, then two linear layers: images (n,
    in_channels, h, w) to a map (n, 2 * width, h // 4, w // 4), and to scores.
    """

    features: nn.Sequential

    def __init__(
        self, in_channels: int, num_classes: int, sides: Sides, width: int = 16, hidden: int = 64
    ):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(in_channels, width, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(2 * width * (sides[0] // 4) * (sides[1] // 4), hidden),
            nn.ReLU(),
        )
        self.head = nn.Linear(hidden, num_classes)

    def forward_features(self, images: torch.Tensor) -> torch.Tensor:
        maps: torch.Tensor = self.features[:CONVOLUTIONAL](images)
        return maps

    def forward_head(self, features: torch.Tensor) -> torch.Tensor:
        return super().forward_head(self.features[CONVOLUTIONAL:](features))


LENET_CHANNELS = 12


class SigmoidLeNet(Halved):
    """Three 5 x 5 convolutions of 12 channels with strides 2, 2, 1 and sigmoids, and a linear head:
    images (n, in_channels, h, w) to a map (n, 12, h / 4, w / 4), and to scores.
    """

    def __init__(self, in_channels: int, num_classes: int, sides: Sides):
        super().__init__()
        # padding by 2 makes each stride of 2 halve a side, rounded up
        height, width = (-(-side // 4) for side in sides)
        self.features = nn.Sequential(
            nn.Conv2d(in_channels, LENET_CHANNELS, 5, 2, 2),
            nn.Sigmoid(),
            nn.Conv2d(LENET_CHANNELS, LENET_CHANNELS, 5, 2, 2),
            nn.Sigmoid(),
            nn.Conv2d(LENET_CHANNELS, LENET_CHANNELS, 5, 1, 2),
            nn.Sigmoid(),
        )
        self.head = nn.Linear(LENET_CHANNELS * height * width, num_classes)
        for parameter in self.parameters():  # as released: smaller ones leave sigmoids linear
            nn.init.uniform_(parameter, -0.5, 0.5)

    def forward_head(self, features: torch.Tensor) -> torch.Tensor:
        return super().forward_head(features.flatten(1))


Norm = Callable[[int], nn.Module]
"""Takes the number of channels."""


def group_norm(channels: int) -> nn.Module:
    """Groups of eight channels: normalises every sample by itself, as DP-SGD needs."""
    return nn.GroupNorm(channels // 8, channels)


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions and a shortcut, 1 x 1 where the shape changes."""

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
    """Maps (n, c, h, w) to the means of their quarters, (n, c, 2, 2), as AdaptiveAvgPool2d(2),
    whose gradient CUDA does not repeat.
    """

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        height, width = maps.shape[2:]
        return F.avg_pool2d(maps, (-(-height // 2), -(-width // 2)), (height // 2, width // 2))


class ResNet(Halved):
    """A 3 x 3 stem, one block per entry of `channels` with strides 1, 2, 2, ..., pooling to
    `pooled` x `pooled`, a linear head. The map has `channels[-1]` channels.
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
        return super().forward_head(self.pool(features).flatten(1))


class PreActivationBlock(nn.Module):
    """BatchNorm, ReLU, 3 x 3 convolution, twice; a shortcut as of `BasicBlock`, activated."""

    def __init__(self, in_channels: int, channels: int, stride: int):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(in_channels)
        self.conv1 = nn.Conv2d(in_channels, channels, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        changes = stride != 1 or in_channels != channels
        self.shortcut = nn.Conv2d(in_channels, channels, 1, stride, bias=False) if changes else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        activated = F.relu(self.bn1(x))
        out: torch.Tensor = self.conv2(F.relu(self.bn2(self.conv1(activated))))
        return out + (x if self.shortcut is None else self.shortcut(activated))


class WideResNet(Halved):
    """Images (n, c, s, s) to a map (n, 64 * width, s / 4, s / 4); `depth` is 6n + 4."""

    def __init__(self, in_channels: int, num_classes: int, depth: int, width: int):
        super().__init__()
        blocks = (depth - 4) // 6
        self.conv = nn.Conv2d(in_channels, 16, 3, 1, 1, bias=False)
        layers: list[nn.Module] = []
        before = 16
        for channels, stride in ((16 * width, 1), (32 * width, 2), (64 * width, 2)):
            for number in range(blocks):
                layers.append(PreActivationBlock(before, channels, stride if number == 0 else 1))
                before = channels
        self.groups = nn.Sequential(*layers)
        self.bn = nn.BatchNorm2d(before)
        self.head = nn.Linear(before, num_classes)

    def forward_features(self, images: torch.Tensor) -> torch.Tensor:
        return F.relu(self.bn(self.groups(self.conv(images))))

    def forward_head(self, features: torch.Tensor) -> torch.Tensor:
        return super().forward_head(features.mean(dim=(2, 3)))


class Unchanged(nn.Module):
    """Images (n, c, h, w) to maps (n, outputs, h, w): the mean of the channels times a number."""

    def __init__(self, outputs: int):
        super().__init__()
        self.outputs = outputs
        self.gain = nn.Parameter(torch.ones(1, 1, 1, 1))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        mean = images.mean(dim=1, keepdim=True)
        return self.gain * mean.expand(-1, self.outputs, -1, -1)


NETWORKS = {
    "cnn": NetworkEntry(CNN),
    "cnn-small": NetworkEntry(lambda c, k, s: CNN(c, k, s, width=8, hidden=32)),
    "resnet8-narrow": NetworkEntry(lambda c, k, s: ResNet(c, k, (16, 32, 64))),
    "resnet8-narrow-gn": NetworkEntry(lambda c, k, s: ResNet(c, k, (16, 32, 64), norm=group_norm)),
    "resnet8-wide": NetworkEntry(
        lambda c, k, s: ResNet(c, k, (128, 256, 512), pooled=2), smallest=5
    ),
    "resnet8-wide-gn": NetworkEntry(
        lambda c, k, s: ResNet(c, k, (128, 256, 512), pooled=2, norm=group_norm), smallest=5
    ),
    "resnet10-slim": NetworkEntry(lambda c, k, s: ResNet(c, k, (16, 32, 64, 128))),
    "wrn-16-2": NetworkEntry(lambda c, k, s: WideResNet(c, k, depth=16, width=2)),
    "wrn-10-1": NetworkEntry(lambda c, k, s: WideResNet(c, k, depth=10, width=1)),
    "lenet-sigmoid": NetworkEntry(SigmoidLeNet),
    "unchanged": NetworkEntry(lambda c, k, s: Unchanged(k), "maps", smallest=1),
}
