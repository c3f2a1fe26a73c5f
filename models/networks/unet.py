"""U-Nets of two 3 x 3 convolutions a level (Ronneberger et al. 2015), padded, so that maps have the
sides of the image.

`unet-64-bn` has 64 to 1,024 channels and activates before it normalises: the U-Net of AsynDGAN
(Chang et al. 2020) and, for BraTS2018, of FedIOD; 31,043,521 parameters for three channels and one
map; `unet-16-bn` is it with 16 to 256 channels. `unet-32-in` has 32 to 512 channels and
InstanceNorm: fastMRI's (Zbontar et al. 2018), with which FL-MRCM reconstructs; 7,756,097 parameters
for one channel and one map; `unet-32-in-nonlocal` has FedAD's residual non-local block at its last
level, which has no parameters, and `unet-8-in` and `unet-8-in-nonlocal` a quarter of the channels.
MONAI's U-Nets are others (`models/networks/segmentation.py`).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from models.entry import NetworkEntry

LEVELS = 5
LARGEST = 6.0
"""Deviations from the mean at which an image is cut off."""

Layer = Callable[[int, int], nn.Module]
"""Takes the channels before it and after it."""


class NonLocal(nn.Module):
    """FedAD's residual non-local block, for maps F (n, j, h, w): with F as a matrix (j, hw), the
    similarity of any two positions S = F^T F, the attention A of Eq. 14, its softmax over the first
    of the two, and F + (A F^T)^T (Eq. 15). As written it has no parameters (Wang et al. 2018 have
    projections).
    """

    def attention(self, maps: torch.Tensor) -> torch.Tensor:
        """A (n, hw, hw), whose columns add up to one."""
        flat = maps.flatten(2)
        return (flat.transpose(1, 2) @ flat).softmax(dim=1)

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        gathered = self.attention(maps) @ maps.flatten(2).transpose(1, 2)
        return maps + gathered.transpose(1, 2).view_as(maps)


class UNet(nn.Module):
    """Images (n, in_channels, h, w) to maps (n, outputs, h, w), of sides that are multiples of 16.

    Two `convolution`s with `width` channels, then four times `pool` and two of twice as many; from
    there `enlarge` to twice the sides and half the channels, joined by the map of the level, and
    two again; last a 1 x 1 convolution. `dropout` is the share of the last level's values that
    training leaves out, `bottom` what becomes of the last level's map before it is enlarged.
    """

    def __init__(
        self,
        in_channels: int,
        outputs: int,
        width: int,
        convolution: Layer,
        enlarge: Layer,
        pool: nn.Module,
        dropout: float = 0.0,
        bottom: nn.Module | None = None,
    ):
        super().__init__()

        def level(before: int, after: int) -> nn.Sequential:
            return nn.Sequential(convolution(before, after), convolution(after, after))

        widths = [width * 2**number for number in range(LEVELS)]
        before = [in_channels, *widths[:-1]]
        self.down = nn.ModuleList(level(*pair) for pair in zip(before, widths, strict=True))
        self.pool = pool
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()
        self.bottom = bottom or nn.Identity()
        upwards = widths[-2::-1]
        self.enlarge = nn.ModuleList(enlarge(2 * channels, channels) for channels in upwards)
        self.up = nn.ModuleList(level(2 * channels, channels) for channels in upwards)
        self.head = nn.Conv2d(width, outputs, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        maps = [self.down[0](images)]
        for level in self.down[1:]:
            maps.append(level(self.pool(maps[-1])))
        last = self.bottom(self.dropout(maps.pop()))
        for enlarge, level in zip(self.enlarge, self.up, strict=True):
            last = level(torch.cat([enlarge(last), maps.pop()], dim=1))
        outputs: torch.Tensor = self.head(last)
        return outputs


class RescaledUNet(UNet):
    """A U-Net that sees each image with mean 0 and deviation 1, cut off at `LARGEST`, and whose
    output is scaled back, as FL-MRCM's code does around its network (Guo et al. 2021): without it
    InstanceNorm would hide how bright an image is. As many outputs as channels.
    """

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        sides = (1, 2, 3)
        mean = images.mean(dim=sides, keepdim=True)
        deviation = images.std(dim=sides, keepdim=True) + 1e-11
        seen = ((images - mean) / deviation).clamp(-LARGEST, LARGEST)
        return super().forward(seen) * deviation + mean


def activated_first(before: int, after: int) -> nn.Module:
    """3 x 3 convolution, ReLU and BatchNorm, in this order."""
    return nn.Sequential(nn.Conv2d(before, after, 3, padding=1), nn.ReLU(), nn.BatchNorm2d(after))


def instance_normalised(before: int, after: int) -> nn.Module:
    """3 x 3 convolution without bias, InstanceNorm and LeakyReLU."""
    return nn.Sequential(
        nn.Conv2d(before, after, 3, padding=1, bias=False),
        nn.InstanceNorm2d(after),
        nn.LeakyReLU(0.2),
    )


def enlarged(before: int, after: int) -> nn.Module:
    """Transposed convolution to twice the sides."""
    return nn.ConvTranspose2d(before, after, 2, stride=2)


def enlarged_normalised(before: int, after: int) -> nn.Module:
    """The same without bias, InstanceNorm and LeakyReLU."""
    return nn.Sequential(
        nn.ConvTranspose2d(before, after, 2, stride=2, bias=False),
        nn.InstanceNorm2d(after),
        nn.LeakyReLU(0.2),
    )


def unet_64_bn(in_channels: int, outputs: int) -> UNet:
    """AsynDGAN's, with max-pooling and half of the last level left out in training."""
    return UNet(in_channels, outputs, 64, activated_first, enlarged, nn.MaxPool2d(2), dropout=0.5)


def unet_16_bn(in_channels: int, outputs: int) -> UNet:
    """The same with a quarter of the channels, for reduced profiles."""
    return UNet(in_channels, outputs, 16, activated_first, enlarged, nn.MaxPool2d(2), dropout=0.5)


def unet_in(in_channels: int, outputs: int, width: int, bottom: nn.Module | None = None) -> UNet:
    """fastMRI's, with average pooling, for images of images; its own width is 32."""
    layers = (instance_normalised, enlarged_normalised, nn.AvgPool2d(2))
    return RescaledUNet(in_channels, outputs, width, *layers, bottom=bottom)


def _in(width: int, bottom: Callable[[], nn.Module] | None = None) -> NetworkEntry:
    return NetworkEntry(
        lambda c, k, s: unet_in(c, k, width, bottom() if bottom else None),
        "maps",
        smallest=32,
        multiple=16,
    )


NETWORKS = {
    "unet-64-bn": NetworkEntry(lambda c, k, s: unet_64_bn(c, k), "maps", smallest=16, multiple=16),
    "unet-16-bn": NetworkEntry(lambda c, k, s: unet_16_bn(c, k), "maps", smallest=16, multiple=16),
    "unet-32-in": _in(32),
    "unet-32-in-nonlocal": _in(32, NonLocal),
    "unet-8-in": _in(8),
    "unet-8-in-nonlocal": _in(8, NonLocal),
}
