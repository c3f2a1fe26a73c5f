"""The image-to-image generator of residual blocks (Johnson et al. 2016) that pix2pix and CycleGAN
have (Isola et al. 2017, Zhu et al. 2017), and a narrow one for reduced profiles.

`resnet-generator` has nine blocks and 64 channels at first: 11,378,179 parameters for three
channels in and out. Its weights are drawn as the framework draws them.
"""

from __future__ import annotations

import torch
from torch import nn

from models.entry import NetworkEntry


def reflected(maps: torch.Tensor, border: int) -> torch.Tensor:
    """Maps (n, c, h, w) with `border` reflected pixels on every side, as
    `torch.nn.functional.pad(mode="reflect")` gives them; the gradient of that is not the same in
    every run on CUDA.
    """
    for side in (2, 3):
        size = maps.shape[side]
        before = maps.narrow(side, 1, border).flip(side)
        after = maps.narrow(side, size - 1 - border, border).flip(side)
        maps = torch.cat([before, maps, after], dim=side)
    return maps


class ReflectedConv2d(nn.Conv2d):
    """A convolution with an odd kernel that keeps height and width, its borders reflected."""

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        return super().forward(reflected(maps, self.kernel_size[0] // 2))


def _convolution(before: int, after: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    """A convolution with reflected borders, or zeros where it has a stride, and InstanceNorm."""
    convolution = (
        nn.Conv2d(before, after, kernel, stride, padding=kernel // 2)
        if stride > 1
        else ReflectedConv2d(before, after, kernel)
    )
    return [convolution, nn.InstanceNorm2d(after)]


class ResidualBlock(nn.Module):
    """Two 3 x 3 convolutions with InstanceNorm, a ReLU between them, added to what comes in."""

    def __init__(self, channels: int):
        super().__init__()
        self.layers = nn.Sequential(
            *_convolution(channels, channels, 3), nn.ReLU(), *_convolution(channels, channels, 3)
        )

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        changes: torch.Tensor = self.layers(maps)
        return maps + changes


class ResNetGenerator(nn.Module):
    """Images (n, in_channels, h, w) to images (n, outputs, h, w) in [-1, 1]; h and w are multiples
    of 4.

    The encoder, to a map (n, 4 * width, h / 4, w / 4): a 7 x 7 convolution to `width` channels, two
    3 x 3 ones with stride 2 and twice the channels, `blocks` residual blocks. The decoder: two
    transposed convolutions with stride 2, a 7 x 7 convolution and tanh.
    """

    def __init__(self, in_channels: int, outputs: int, width: int = 64, blocks: int = 9):
        super().__init__()
        self.features = nn.Sequential(
            *_convolution(in_channels, width, 7),
            nn.ReLU(),
            *_convolution(width, 2 * width, 3, stride=2),
            nn.ReLU(),
            *_convolution(2 * width, 4 * width, 3, stride=2),
            nn.ReLU(),
            *(ResidualBlock(4 * width) for _ in range(blocks)),
        )
        self.head = nn.Sequential(
            nn.ConvTranspose2d(4 * width, 2 * width, 3, 2, 1, output_padding=1),
            nn.InstanceNorm2d(2 * width),
            nn.ReLU(),
            nn.ConvTranspose2d(2 * width, width, 3, 2, 1, output_padding=1),
            nn.InstanceNorm2d(width),
            nn.ReLU(),
            ReflectedConv2d(width, outputs, 7),
            nn.Tanh(),
        )

    def forward_features(self, images: torch.Tensor) -> torch.Tensor:
        maps: torch.Tensor = self.features(images)
        return maps

    def forward_head(self, features: torch.Tensor) -> torch.Tensor:
        outputs: torch.Tensor = self.head(features)
        return outputs

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.forward_head(self.forward_features(images))


NETWORKS = {
    "resnet-generator": NetworkEntry(
        lambda c, k, s: ResNetGenerator(c, k), "images", smallest=8, multiple=4
    ),
    "resnet-generator-narrow": NetworkEntry(
        lambda c, k, s: ResNetGenerator(c, k, width=16, blocks=3), "images", smallest=8, multiple=4
    ),
}
