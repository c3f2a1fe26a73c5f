"""Where a saliency map points."""

from __future__ import annotations

import torch


def pointing_hits(maps: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Whether maps (n, h, w) of at least 0 point at `places`, bool (n, H, W), on a grid of its own;
    bool (n,). The pointing game of Zhang et al. 2018 ("Top-down neural attention by excitation
    backprop", section 4.2): a map points at the centre of its greatest value, the first of equal
    ones; no tolerance. One that is 0 everywhere points at nothing.
    """
    height, width = maps.shape[1:]
    flat = maps.flatten(1)
    at = flat.argmax(dim=1)
    row = (2 * (at // width) + 1) * places.shape[1] // (2 * height)
    column = (2 * (at % width) + 1) * places.shape[2] // (2 * width)
    return places[torch.arange(len(maps), device=maps.device), row, column] & (flat > 0).any(dim=1)
