"""Averages over clients: of network states, and the weights that averages of outputs share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch


def average_states(states: Sequence[Mapping[str, torch.Tensor]], weights: Sequence[float]) -> dict[str, torch.Tensor]:
    """The weighted mean of every entry of networks' states; weights are normalised to sum to one.

    Entries are parameters and buffers alike, so that BatchNorm's running means and variances are averaged too. Sums
    are taken in float64; integer entries (BatchNorm's count of batches) are rounded. FedAvg (McMahan et al. 2017),
    Algorithm 1, with weights n_k.

    Raises ValueError for states that do not match, or weights that are negative or sum to zero.
    """
    if not states or len(states) != len(weights):
        raise ValueError(f"as many weights as states are needed, got {len(states)} states and {len(weights)} weights")
    if min(weights) < 0 or sum(weights) <= 0:
        raise ValueError(f"weights must be at least 0 and not all 0: {list(weights)}")
    shapes = [{name: tensor.shape for name, tensor in state.items()} for state in states]
    if any(other != shapes[0] for other in shapes[1:]):
        raise ValueError("states of different networks cannot be averaged")
    if any(tensor.is_meta for tensor in states[0].values()):
        return dict(states[0])  # while planning there are only shapes
    total = sum(weights)
    averaged = {}
    for name, first in states[0].items():
        wide = torch.float32 if first.device.type == "mps" else torch.float64  # MPS has no double precision
        mean = sum(state[name].to(wide) * (weight / total) for state, weight in zip(states, weights, strict=True))
        assert isinstance(mean, torch.Tensor)
        averaged[name] = (mean if first.is_floating_point() else mean.round()).to(first.dtype)
    return averaged


def class_count_weights(counts: torch.Tensor) -> torch.Tensor:
    """N_k^c / sum_k N_k^c, (clients, classes), from label counts; uniform for a class that no client holds."""
    total = counts.sum(dim=0)
    return torch.where(total > 0, counts / total.clamp(min=1), 1 / len(counts))
