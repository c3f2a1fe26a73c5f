"""Networks with one output per pixel: the encoder of any network and a decoder that enlarges its
map, for the dense tasks of FedSA's Table 4, whose decoders the paper does not describe.
"""

import torch
from torch import nn

from fedtables.models.cut import Halved, decoder_parameters, encode
from fedtables.models.entry import Sides

WIDTH = 32
"""Channels of the decoder between its first layer and its last."""


def enlargements(start: Sides, end: Sides) -> list[Sides]:
    """Sides of the maps after `start`, each at most twice the one before, up to `end`."""
    steps: list[Sides] = []
    while start != end:
        steps.insert(0, end)
        end = tuple(max(first, -(-last // 2)) for first, last in zip(start, end, strict=True))
    return steps


class Dense(Halved):
    """Images (n, in_channels, h, w) to maps (n, num_outputs, h, w), with (h, w) the `sides`. The
    encoder is `network`, without its decoder. Then come a 1 x 1 convolution, BatchNorm and ReLU. As
    often as the map is smaller than the image follow: enlarge by two (bilinear), 3 x 3 convolution,
    BatchNorm, ReLU. Last a 1 x 1 convolution.
    """

    head: nn.Conv2d

    def __init__(self, network: nn.Module, in_channels: int, num_outputs: int, sides: Sides):
        super().__init__()
        with torch.no_grad():
            features = encode(network.eval(), torch.zeros(1, in_channels, *sides))
        for name in {name.rpartition(".")[0] for name in decoder_parameters(network)}:
            network.set_submodule(name, nn.Identity())
        self.encoder = network.train()
        layers: list[nn.Module] = [
            nn.Conv2d(features.shape[1], WIDTH, 1, bias=False),
            nn.BatchNorm2d(WIDTH),
            nn.ReLU(),
        ]
        for size in enlargements(tuple(features.shape[2:]), sides):
            layers += [
                nn.Upsample(size=size, mode="bilinear"),
                nn.Conv2d(WIDTH, WIDTH, 3, 1, 1, bias=False),
                nn.BatchNorm2d(WIDTH),
                nn.ReLU(),
            ]
        self.decoder = nn.Sequential(*layers)
        self.head = nn.Conv2d(WIDTH, num_outputs, 1)

    def forward_features(self, images: torch.Tensor) -> torch.Tensor:
        return encode(self.encoder, images)

    def forward_head(self, features: torch.Tensor) -> torch.Tensor:
        return super().forward_head(self.decoder(features))
