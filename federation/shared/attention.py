"""Attention maps of clients' networks side by side: on one grid and in one task's classes, and what
they bound together (FedAD, Eq. 6).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from federation.tasks.base import Task
from federation.tasks.multi_label import placed


def aligned(
    maps: torch.Tensor, side: tuple[int, int], client_task: Task | None, task: Task
) -> torch.Tensor:
    """Maps (n, c, h, w) of the classes of `client_task` as those of `task`, (n, C, *side), NaN
    for classes that it lacks.

    Enlarged or reduced bilinearly, for networks whose maps are of different sides.
    """
    if maps.shape[2:] != side:
        maps = F.interpolate(maps, size=side, mode="bilinear", align_corners=False)
    by_pixel = placed(maps.movedim(1, 3).flatten(0, 2), client_task, task)
    return by_pixel.unflatten(0, (len(maps), *side)).movedim(3, 1)


def attention_bounds(
    maps: torch.Tensor, holders: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """FedAD's Eq. 6: consensus I and diversity U, (n, C, *sides), the least and the greatest of
    maps (clients, n, C, *sides) in [0, 1].

    Only clients that hold samples of a class count for it, `holders` (clients, C): the paper does
    not say so, but a model knows nothing of a class that it has never seen. Both are 0 for a class
    that no client holds.
    """
    pixels = [1] * (maps.ndim - 3)
    held = holders.view(len(holders), 1, -1, *pixels)
    least = torch.where(held, maps, 1.0).amin(dim=0)
    return torch.where(holders.any(dim=0).view(-1, *pixels), least, 0.0), torch.where(
        held, maps, 0.0
    ).amax(dim=0)
