"""The lowest map of a U-Net, which its outputs do not show."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.hooks import RemovableHandle

from models.entry import ModelError


def bottom_of(model: nn.Module) -> nn.Module:
    """The module through which a U-Net's lowest map goes. Raises ModelError for another network."""
    if not isinstance(getattr(model, "bottom", None), nn.Module):
        raise ModelError(
            f"a {type(model).__name__} has no lowest map in the middle, as this method needs; use a"
            " U-Net such as unet-32-in"
        )
    return cast("nn.Module", model.bottom)


def when_passed(model: nn.Module, act: Callable[[torch.Tensor], None]) -> RemovableHandle:
    """Call `act` with the lowest map (n, c, h, w) that enters `bottom_of(model)`, in every forward
    pass until the handle is removed.
    """
    return bottom_of(model).register_forward_pre_hook(lambda module, inputs: act(inputs[0]))


class Latent(nn.Module):
    """`model` as what it makes of images (n, c, h, w) on its way: its lowest map, pooled to `side`
    x `side` and flat, (n, channels * side^2).
    """

    def __init__(self, model: nn.Module, side: int):
        super().__init__()
        self.model = model
        self.side = side
        self.train(model.training)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        maps: list[torch.Tensor] = []
        handle = when_passed(self.model, maps.append)
        try:
            self.model(images)
        finally:
            handle.remove()
        return pooled(maps[0], self.side)


def pooled(maps: torch.Tensor, side: int) -> torch.Tensor:
    """Maps (n, c, h, w) averaged to `side` x `side` and flat, (n, c * side^2); what is left over at
    the right and at the bottom of sides that are no multiple does not count.
    """
    kernel = (maps.shape[2] // side, maps.shape[3] // side)  # adaptive pooling varies on CUDA
    return F.avg_pool2d(maps, kernel)[:, :, :side, :side].flatten(1)
