"""Networks of tables that have no runner yet: on the `meta` device, without weights, to count what
they would send.

torch is imported only when something is counted: `list` reads the papers' spec files, and has no
use for it.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn


def numbers(module: nn.Module) -> int:
    """Floating-point numbers in a network's state: parameters, and running statistics, which
    methods average with them.
    """
    return sum(
        tensor.numel() for tensor in module.state_dict().values() if tensor.is_floating_point()
    )


@functools.cache
def segresnet(filters: int) -> int:
    """Numbers in MONAI's SegResNet (Myronenko 2018) for four modalities and three maps, without a
    reconstruction branch.

    `filters` are the channels of its first convolution; blocks as in NVFlare's BraTS18 job.
    """
    import torch

    with warnings.catch_warnings():  # importing it calls what torch has deprecated
        warnings.simplefilter("ignore", FutureWarning)
        from monai.networks.nets import SegResNet
    with torch.device("meta"):
        return numbers(
            SegResNet(
                init_filters=filters,
                in_channels=4,
                out_channels=3,
                blocks_down=(1, 2, 2, 4),
                blocks_up=(1, 1, 1),
            )
        )


@functools.cache
def segmentation_unet() -> int:
    """Numbers in FedIOD's U-Net for BraTS2018 (authors' code): three channels in, one map out, 64
    to 1,024 channels.

    Convolution, ReLU and BatchNorm in this order, biases as torch's defaults.
    """
    from torch import nn

    def layer(inputs: int, outputs: int) -> list[nn.Module]:
        return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.BatchNorm2d(outputs)]

    return _unet(3, 1, 64, layer, transposed_bias=True)


@functools.cache
def reconstruction_unet() -> int:
    """Numbers in FL-MRCM's U-Net for MRI reconstruction (authors' code): one channel in and out, 32
    to 512 channels.
    """
    from torch import nn

    def layer(inputs: int, outputs: int) -> list[nn.Module]:
        return [
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
            nn.InstanceNorm2d(outputs),
            nn.LeakyReLU(0.2),
        ]

    return _unet(1, 1, 32, layer, transposed_bias=False)


def _unet(
    inputs: int,
    outputs: int,
    base: int,
    layer: Callable[[int, int], list[nn.Module]],
    transposed_bias: bool,
) -> int:
    """Numbers in a U-Net with four poolings and `base` channels first. Its layers are never run, so
    nothing joins them.
    """
    import torch
    from torch import nn

    widths = [base * 2**level for level in range(5)]
    with torch.device("meta"):
        parts: list[nn.Module] = [nn.Conv2d(base, outputs, 1)]
        for before, width in zip([inputs, *widths], widths, strict=False):
            parts += layer(before, width) + layer(width, width)
        for below, width in zip(widths[:0:-1], widths[-2::-1], strict=True):
            parts.append(nn.ConvTranspose2d(below, width, 2, stride=2, bias=transposed_bias))
            parts += layer(2 * width, width) + layer(width, width)
        return numbers(nn.ModuleList(parts))


@functools.cache
def patches(size: int) -> int:
    """Scores that the patch discriminator of Isola et al. 2017 (70 x 70) gives an image of `size` x
    `size`.
    """
    import torch
    from torch import nn

    with torch.device("meta"):
        halving = [nn.Conv2d(1, 1, 4, stride=2, padding=1) for _ in range(3)]
        last = [nn.Conv2d(1, 1, 4, padding=1) for _ in range(2)]
        return int(nn.Sequential(*halving, *last)(torch.empty(1, 1, size, size)).numel())
