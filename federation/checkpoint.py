"""Trained networks as they are kept and sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import nn

History = dict[str, list[float]]
"""Metrics by name, a value per epoch or round."""


@dataclass(frozen=True)
class Checkpoint:
    """A trained network: its name, its weights, and how its test metrics went by epoch."""

    network: str
    outputs: int
    """Size of its last layer."""
    state: Mapping[str, torch.Tensor]
    """Weights and buffers by name; those of a stage are read when they are looked at."""
    owner: str
    """`server`, or `client-3`."""
    lineage: str
    """Digest of everything that determined the weights; stages computed from the checkpoint are
    keyed by it."""
    history: History = field(default_factory=dict)
    """Test metrics after each epoch or round of training."""
    samples: torch.Tensor | None = None
    """Images that the method generated, uint8 (n, c, h, w), for measures of their quality."""


def state_of(model: nn.Module) -> dict[str, torch.Tensor]:
    """A copy of a network's parameters and buffers; while planning there is nothing to copy."""
    return {
        name: tensor if tensor.is_meta else tensor.detach().clone()
        for name, tensor in model.state_dict().items()
    }
