"""Wide residual networks for small images (Zagoruyko and Komodakis 2016), and a narrow one for
reduced profiles.

WRN-d-k has d = 6n + 4 layers: a 3 x 3 stem of 16 channels and three groups of n blocks with 16k,
32k and 64k channels. Its blocks normalise and activate before their convolutions. WRN-16-2 has
691,674 parameters for ten classes.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from models.entry import NetworkEntry


class PreActivationBlock(nn.Module):
    """BatchNorm, ReLU, 3 x 3 convolution, twice; where the shape changes, a 1 x 1 convolution of
    the activated input is the shortcut."""

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


class WideResNet(nn.Module):
    """Images (n, in_channels, s, s) to a map (n, 64 * width, s / 4, s / 4), and to scores (n,
    num_classes).

    Raises ValueError unless `depth` is 6n + 4.
    """

    def __init__(self, in_channels: int, num_classes: int, depth: int, width: int):
        super().__init__()
        blocks, rest = divmod(depth - 4, 6)
        if blocks < 1 or rest:
            raise ValueError(f"a wide ResNet has 6n + 4 layers, as 10, 16 or 28, not {depth}")
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
        outputs: torch.Tensor = self.head(features.mean(dim=(2, 3)))
        return outputs

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.forward_head(self.forward_features(images))


NETWORKS = {
    "wrn-16-2": NetworkEntry(lambda c, k, s: WideResNet(c, k, depth=16, width=2)),
    "wrn-10-1": NetworkEntry(lambda c, k, s: WideResNet(c, k, depth=10, width=1)),
}
