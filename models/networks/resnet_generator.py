"""The image-to-image generator of residual blocks (Johnson et al. 2016) that pix2pix and CycleGAN
have (Isola et al. 2017, Zhu et al. 2017), and a narrow one for reduced profiles.

`resnet-generator` has nine blocks and 64 channels at first: 11,378,179 parameters for three
channels in and out. Its weights are drawn as the framework draws them. `resnet-generator-bn` is the
form in which AsynDGAN's released code trains it, with BatchNorm, dropout in the blocks and weights
from N(0, 0.02): 11,383,427 parameters.
"""

from collections.abc import Callable

import torch
from torch import nn

from fedtables.models.cut import Halved
from fedtables.models.entry import NetworkEntry


def reflected(maps: torch.Tensor, border: int) -> torch.Tensor:
    """Maps (n, c, h, w) with `border` reflected pixels on every side, as `F.pad` gives them, whose
    gradient CUDA does not repeat.
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


Norm = type[nn.InstanceNorm2d] | type[nn.BatchNorm2d]


def _convolution(
    before: int, after: int, kernel: int, norm: Norm, stride: int = 1
) -> list[nn.Module]:
    """A convolution, borders reflected unless it has a stride, and its norm."""
    bias = norm is nn.InstanceNorm2d
    convolution = (
        nn.Conv2d(before, after, kernel, stride, padding=kernel // 2, bias=bias)
        if stride > 1
        else ReflectedConv2d(before, after, kernel, bias=bias)
    )
    return [convolution, norm(after)]


def _enlarging(before: int, after: int, norm: Norm) -> list[nn.Module]:
    """A transposed convolution with stride 2, its norm and a ReLU."""
    bias = norm is nn.InstanceNorm2d
    enlarge = nn.ConvTranspose2d(before, after, 3, 2, 1, output_padding=1, bias=bias)
    return [enlarge, norm(after), nn.ReLU()]


class ResidualBlock(nn.Module):
    """Two 3 x 3 convolutions with norms, ReLU and dropout between, added to what comes in."""

    def __init__(self, channels: int, norm: Norm = nn.InstanceNorm2d, dropout: float = 0.0):
        super().__init__()
        self.layers = nn.Sequential(
            *_convolution(channels, channels, 3, norm),
            nn.ReLU(),
            *([nn.Dropout(dropout)] if dropout else []),
            *_convolution(channels, channels, 3, norm),
        )

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        changes: torch.Tensor = self.layers(maps)
        return maps + changes


class ResNetGenerator(Halved):
    """Images (n, in_channels, h, w) to images (n, outputs, h, w) in [-1, 1]. The encoder, to a map
    (n, 4 * width, h / 4, w / 4): a 7 x 7 convolution, two 3 x 3 ones with stride 2, `blocks`
    residual blocks. The decoder: two transposed convolutions with stride 2, a 7 x 7 one and tanh.
    """

    def __init__(
        self,
        in_channels: int,
        outputs: int,
        width: int = 64,
        blocks: int = 9,
        norm: Norm = nn.InstanceNorm2d,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.features = nn.Sequential(
            *_convolution(in_channels, width, 7, norm),
            nn.ReLU(),
            *_convolution(width, 2 * width, 3, norm, stride=2),
            nn.ReLU(),
            *_convolution(2 * width, 4 * width, 3, norm, stride=2),
            nn.ReLU(),
            *(ResidualBlock(4 * width, norm, dropout) for _ in range(blocks)),
        )
        self.head = nn.Sequential(
            *_enlarging(4 * width, 2 * width, norm),
            *_enlarging(2 * width, width, norm),
            ReflectedConv2d(width, outputs, 7),
            nn.Tanh(),
        )


def released(in_channels: int, outputs: int, width: int = 64, blocks: int = 9) -> ResNetGenerator:
    """As AsynDGAN's released code trains it: BatchNorm, dropout of half of a block's values, and
    pix2pix's initialisation, N(0, 0.02) for convolutions and N(1, 0.02) for the norms' scales.
    """
    generator = ResNetGenerator(in_channels, outputs, width, blocks, nn.BatchNorm2d, dropout=0.5)
    for module in generator.modules():
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
            nn.init.normal_(module.weight, 0.0, 0.02)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.weight, 1.0, 0.02)
    return generator


def _entry(build: Callable[..., nn.Module], **sizes: int) -> NetworkEntry:
    return NetworkEntry(lambda c, k, s: build(c, k, **sizes), "images", smallest=8, multiple=4)


NETWORKS = {
    "resnet-generator": _entry(ResNetGenerator),
    "resnet-generator-narrow": _entry(ResNetGenerator, width=16, blocks=3),
    "resnet-generator-bn": _entry(released),
    "resnet-generator-bn-narrow": _entry(released, width=16, blocks=3),
}
