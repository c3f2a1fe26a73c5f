"""A small convolutional network for reduced profiles."""

from __future__ import annotations

import torch
from torch import nn

from models.entry import NetworkEntry, Sides

CONVOLUTIONAL = 6
"""Layers of `features` before the map is flattened. The names of the weights, and with them all
snapshots, are older than the cut between encoder and decoder."""


class CNN(nn.Module):
    """Two 3 x 3 convolutions with 2 x 2 max-pooling, then two linear layers. Input sides must be at
    least 4.

    Images (n, in_channels, h, w) to a map (n, 2 * width, h // 4, w // 4), and to scores (n,
    num_classes).
    """

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
        outputs: torch.Tensor = self.head(self.features[CONVOLUTIONAL:](features))
        return outputs

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.forward_head(self.forward_features(images))


NETWORKS = {
    "cnn": NetworkEntry(CNN),
    "cnn-small": NetworkEntry(lambda c, k, s: CNN(c, k, s, width=8, hidden=32)),
}
