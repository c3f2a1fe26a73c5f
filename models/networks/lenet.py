"""The LeNet variant that gradient attacks are tried on: smooth everywhere, so that its gradient has
a gradient.

"Deep Leakage from Gradients" (Zhu, Liu and Han 2019) puts sigmoids for ReLUs and strides for
pooling: the attack differentiates a gradient, and the second derivative of ReLU and of max-pooling
is zero.
"""

from __future__ import annotations

import torch
from torch import nn

from models.entry import NetworkEntry, Sides

CHANNELS = 12


class SigmoidLeNet(nn.Module):
    """Three 5 x 5 convolutions of 12 channels with strides 2, 2, 1, each followed by a sigmoid, and
    a linear head.

    Images (n, in_channels, h, w) to a map (n, 12, h / 4, w / 4), and to scores (n, num_classes). A
    side of 32 pixels gives the head 12 * 8 * 8 = 768 inputs.
    """

    def __init__(self, in_channels: int, num_classes: int, sides: Sides):
        super().__init__()
        # padding by 2 makes each stride of 2 halve a side, rounded up
        height, width = (-(-side // 4) for side in sides)
        self.features = nn.Sequential(
            nn.Conv2d(in_channels, CHANNELS, 5, 2, 2),
            nn.Sigmoid(),
            nn.Conv2d(CHANNELS, CHANNELS, 5, 2, 2),
            nn.Sigmoid(),
            nn.Conv2d(CHANNELS, CHANNELS, 5, 1, 2),
            nn.Sigmoid(),
            nn.Flatten(),
        )
        self.head = nn.Linear(CHANNELS * height * width, num_classes)
        for parameter in (
            self.parameters()
        ):  # as released, biases too: the usual smaller weights leave sigmoids nearly linear
            nn.init.uniform_(parameter, -0.5, 0.5)

    def forward_features(self, images: torch.Tensor) -> torch.Tensor:
        maps: torch.Tensor = self.features[:-1](images)  # the last layer flattens
        return maps

    def forward_head(self, features: torch.Tensor) -> torch.Tensor:
        outputs: torch.Tensor = self.head(features.flatten(1))
        return outputs

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.forward_head(self.forward_features(images))


NETWORKS = {"lenet-sigmoid": NetworkEntry(SigmoidLeNet)}
