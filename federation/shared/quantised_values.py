"""Answers as bytes: 256 equal steps for each class."""

from __future__ import annotations

from collections.abc import Mapping

import torch


def quantised(values: torch.Tensor) -> dict[str, torch.Tensor]:
    """Values (n, C, ...) in 256 equal steps from the least to the greatest of their class: uint8,
    and two floats a class.
    """
    by_class = values.transpose(0, 1).flatten(1)
    least, most = by_class.amin(dim=1), by_class.amax(dim=1)
    step = torch.where(most > least, most - least, 1.0) / 255
    shape = (-1, *[1] * (values.ndim - 2))
    return {
        "values": ((values - least.view(shape)) / step.view(shape)).round().to(torch.uint8),
        "least": least,
        "step": step,
    }


def restored(payload: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """What `quantised` was given, but for half a step."""
    values = payload["values"]
    shape = (-1, *[1] * (values.ndim - 2))
    return payload["least"].view(shape) + payload["step"].view(shape) * values
