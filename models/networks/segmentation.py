"""MONAI's networks that make maps: the U-Net with residual units (Kerfoot et al. 2018) and
SegResNet (Myronenko 2018), for images and for volumes.

SegResNet has the blocks of NVFlare's BraTS18 job and no reconstruction branch; `half` has half of
its filters. `unet-narrow` is a U-Net for reduced profiles, one convolution a level.
"""

from __future__ import annotations

from typing import Literal

from torch import nn

from models.entry import NetworkEntry
from models.libraries import monai_networks


def unet(
    dims: int, in_channels: int, outputs: int, channels: tuple[int, ...], residual_units: int
) -> nn.Module:
    """MONAI's UNet of `dims` sides: `channels` from the first level to the last, halved between
    them; PReLU and InstanceNorm, MONAI's defaults.
    """
    model: nn.Module = monai_networks().UNet(
        dims,
        in_channels,
        outputs,
        channels,
        strides=(2,) * (len(channels) - 1),
        num_res_units=residual_units,
    )
    return model


def segresnet(
    dims: int, in_channels: int, outputs: int, filters: int, dropout: float = 0.0
) -> nn.Module:
    """MONAI's SegResNet of `dims` sides, with `filters` channels after its first convolution, of
    which training drops a share of `dropout`.
    """
    model: nn.Module = monai_networks().SegResNet(
        spatial_dims=dims,
        init_filters=filters,
        in_channels=in_channels,
        out_channels=outputs,
        blocks_down=(1, 2, 2, 4),
        blocks_up=(1, 1, 1),
        dropout_prob=dropout or None,
    )
    return model


def _unet(dims: Literal[2, 3], channels: tuple[int, ...], residual_units: int) -> NetworkEntry:
    shortest = 2 ** (len(channels) - 1)  # leaves one pixel, and InstanceNorm needs two
    return NetworkEntry(
        lambda c, k, s: unet(dims, c, k, channels, residual_units),
        "maps",
        dims,
        smallest=2 * shortest,
        multiple=shortest,
    )


def _segresnet(dims: Literal[2, 3], filters: int, dropout: float = 0.0) -> NetworkEntry:
    return NetworkEntry(
        lambda c, k, s: segresnet(dims, c, k, filters, dropout),
        "maps",
        dims,
        smallest=8,
        multiple=8,
    )


NETWORKS = {
    "unet": _unet(2, (16, 32, 64, 128, 256), residual_units=2),
    "unet-3d": _unet(3, (16, 32, 64, 128, 256), residual_units=2),
    "unet-narrow": _unet(2, (8, 16, 32), residual_units=0),
    "unet-narrow-3d": _unet(3, (8, 16, 32), residual_units=0),
    "segresnet": _segresnet(2, 16),
    "segresnet-half": _segresnet(2, 8),
    "segresnet-3d": _segresnet(3, 16),
    "segresnet-half-3d": _segresnet(3, 8),
    "segresnet-dropout-3d": _segresnet(3, 16, dropout=0.2),
    "segresnet-half-dropout-3d": _segresnet(3, 8, dropout=0.2),
}
