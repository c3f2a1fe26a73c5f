"""U-Nets of two 3 x 3 convolutions a level (Ronneberger et al. 2015), padded, so that maps have the
sides of the image.

- `unet-64-bn` (64 to 1,024 channels) activates before it normalises: the U-Net of AsynDGAN (Chang
  et al. 2020) and, for BraTS2018, of FedIOD; `unet-16-bn` is it with a quarter of the channels.
- `unet-32-in` (32 to 512 channels) has InstanceNorm: fastMRI's (Zbontar et al. 2018), with which
  FL-MRCM reconstructs; `-nonlocal` has FedAD's residual non-local block at its last level, and
  `unet-8-in` a quarter of the channels.
- `unet` and `segresnet` are MONAI's, for images and, as `-3d`, for volumes: the U-Net with residual
  units (Kerfoot et al. 2018) and SegResNet (Myronenko 2018) with the blocks of NVFlare's BraTS18
  job and no reconstruction branch; `half` has half of its filters. `unet-narrow` is a U-Net for
  reduced profiles, one convolution a level.
"""

from collections.abc import Callable
from typing import Literal

import torch
from torch import nn

from fedtables.models.entry import NetworkEntry, Sides, monai_networks

LEVELS = 5
LARGEST = 6.0
"""Deviations from the mean at which an image is cut off."""

Layer = Callable[[int, int], nn.Module]
"""Takes the channels before it and after it."""


class NonLocal(nn.Module):
    """FedAD's residual non-local block, for maps F (n, j, h, w), as a matrix (j, hw): the attention
    A (Eq. 14) is the softmax of F^T F over its first position, and F + (A F^T)^T (Eq. 15) the
    output. As written it has no parameters.
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
    output is scaled back, as FL-MRCM's code does (Guo et al. 2021). As many outputs as channels.
    """

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        sides = (1, 2, 3)
        mean = images.mean(dim=sides, keepdim=True)
        deviation = images.std(dim=sides, keepdim=True) + 1e-11
        seen = ((images - mean) / deviation).clamp(-LARGEST, LARGEST)
        return super().forward(seen) * deviation + mean


def unet_bn(width: int) -> NetworkEntry:
    """AsynDGAN's, with max-pooling and dropout of half of the last level; 64 wide in print."""

    def convolution(before: int, after: int) -> nn.Module:
        conv = nn.Conv2d(before, after, 3, padding=1)
        return nn.Sequential(conv, nn.ReLU(), nn.BatchNorm2d(after))

    def enlarge(before: int, after: int) -> nn.Module:
        return nn.ConvTranspose2d(before, after, 2, stride=2)

    def build(channels: int, outputs: int, sides: Sides) -> nn.Module:
        return UNet(channels, outputs, width, convolution, enlarge, nn.MaxPool2d(2), 0.5)

    return NetworkEntry(build, "maps", smallest=16, multiple=16)


def unet_in(width: int, bottom: type[nn.Module] = nn.Identity) -> NetworkEntry:
    """fastMRI's, with average pooling, for images of images; its own width is 32."""

    def normalised(layer: nn.Module, channels: int) -> nn.Module:
        return nn.Sequential(layer, nn.InstanceNorm2d(channels), nn.LeakyReLU(0.2))

    def convolution(before: int, after: int) -> nn.Module:
        return normalised(nn.Conv2d(before, after, 3, padding=1, bias=False), after)

    def enlarge(before: int, after: int) -> nn.Module:
        return normalised(nn.ConvTranspose2d(before, after, 2, stride=2, bias=False), after)

    def build(channels: int, outputs: int, sides: Sides) -> nn.Module:
        layers = (width, convolution, enlarge, nn.AvgPool2d(2))
        return RescaledUNet(channels, outputs, *layers, bottom=bottom())

    return NetworkEntry(build, "maps", smallest=32, multiple=16)


def monai_unet(dims: Literal[2, 3], channels: tuple[int, ...], residual_units: int) -> NetworkEntry:
    """MONAI's UNet: `channels` by level, sides halved between; PReLU and InstanceNorm."""
    strides = (2,) * (len(channels) - 1)
    shortest = 2 ** len(strides)  # leaves one pixel, and InstanceNorm needs two
    return NetworkEntry(
        lambda c, k, s: monai_networks().UNet(
            dims, c, k, channels, strides, num_res_units=residual_units
        ),
        "maps",
        dims,
        smallest=2 * shortest,
        multiple=shortest,
    )


class Doubling(nn.Upsample):
    """Linear interpolation to twice the sides. PyTorch's own repeats itself on a GPU in a slow form
    only: on a CPU its operations take eleven times as long as those of `doubled`. On a GPU neither
    was measured.
    """

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        usual = maps.device.type in ("cpu", "meta")
        return super().forward(maps) if usual else doubled(maps)


def doubled(maps: torch.Tensor) -> torch.Tensor:
    """Maps (n, c, *sides) interpolated linearly to twice their sides: each value becomes two, which
    are three quarters of it and a quarter of its neighbour on either side, itself at an edge.
    """
    for dim in range(2, maps.ndim):
        count = maps.shape[dim]
        inner = maps.narrow(dim, 0, count - 1), maps.narrow(dim, 1, count - 1)
        before = torch.cat([maps.narrow(dim, 0, 1), inner[0]], dim)
        after = torch.cat([inner[1], maps.narrow(dim, count - 1, 1)], dim)
        both = [torch.lerp(maps, neighbour, 0.25) for neighbour in (before, after)]
        maps = torch.stack(both, dim + 1).flatten(dim, dim + 1)
    return maps


def segresnet(dims: Literal[2, 3], filters: int, dropout: float | None = None) -> NetworkEntry:
    """MONAI's SegResNet, with `filters` channels after its first convolution."""
    blocks = {"blocks_down": (1, 2, 2, 4), "blocks_up": (1, 1, 1)}

    def built(channels: int, outputs: int, sides: Sides) -> nn.Module:
        model: nn.Module = monai_networks().SegResNet(
            dims, filters, channels, outputs, dropout_prob=dropout, **blocks
        )
        for module in model.modules():
            for name, child in module.named_children():
                if type(child) is nn.Upsample and child.scale_factor == (2.0,) * dims:
                    assert not child.align_corners
                    own = Doubling(scale_factor=2, mode=child.mode, align_corners=False)
                    setattr(module, name, own)
        return model

    return NetworkEntry(
        built,
        "maps",
        dims,
        smallest=8,
        multiple=8,
    )


NETWORKS = {
    "unet-64-bn": unet_bn(64),
    "unet-16-bn": unet_bn(16),
    "unet-32-in": unet_in(32),
    "unet-32-in-nonlocal": unet_in(32, NonLocal),
    "unet-8-in": unet_in(8),
    "unet-8-in-nonlocal": unet_in(8, NonLocal),
    "unet": monai_unet(2, (16, 32, 64, 128, 256), residual_units=2),
    "unet-3d": monai_unet(3, (16, 32, 64, 128, 256), residual_units=2),
    "unet-narrow": monai_unet(2, (8, 16, 32), residual_units=0),
    "unet-narrow-3d": monai_unet(3, (8, 16, 32), residual_units=0),
    "segresnet": segresnet(2, 16),
    "segresnet-half": segresnet(2, 8),
    "segresnet-3d": segresnet(3, 16),
    "segresnet-half-3d": segresnet(3, 8),
    "segresnet-dropout-3d": segresnet(3, 16, dropout=0.2),
    "segresnet-half-dropout-3d": segresnet(3, 8, dropout=0.2),
}
