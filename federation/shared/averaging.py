"""Averages over clients: of network states, and the weights that averages of outputs share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch


def average_states(
    states: Iterable[Mapping[str, torch.Tensor]], weights: Sequence[float]
) -> dict[str, torch.Tensor]:
    """The weighted mean of every entry of networks' states; weights are normalised to sum to one.

    Entries are parameters and buffers alike, so that BatchNorm's running means and variances are
    averaged too. Sums are taken in float64; integer entries (BatchNorm's count of batches) are
    rounded. FedAvg (McMahan et al. 2017), Algorithm 1, with weights n_k. States are looked at one
    at a time, so that an iterator need never hold them all.

    Raises ValueError for states that do not match, or weights that are negative or sum to zero.
    """
    if weights and (min(weights) < 0 or sum(weights) <= 0):
        raise ValueError(f"weights must be at least 0 and not all 0: {list(weights)}")
    total = sum(weights)
    types: dict[str, torch.dtype] = {}
    shapes: dict[str, torch.Size] = {}
    mean, planned = torch.empty(0), dict[str, torch.Tensor]()
    count = 0
    for count, state in enumerate(states, 1):
        if count > len(weights):
            break
        if count == 1:
            types = {name: tensor.dtype for name, tensor in state.items()}
            shapes = {name: tensor.shape for name, tensor in state.items()}
        elif {name: tensor.shape for name, tensor in state.items()} != shapes:
            raise ValueError("states of different networks cannot be averaged")
        if any(tensor.is_meta for tensor in state.values()):
            planned = dict(state)  # the mean has its shapes, and no content
            continue
        on_mps = any(tensor.device.type == "mps" for tensor in state.values())
        wide = torch.float32 if on_mps else torch.float64  # MPS has no double precision
        flat = torch.cat([state[name].reshape(-1).to(wide) for name in shapes]).mul_(
            weights[count - 1] / total
        )
        mean = flat if count == 1 else mean.add_(flat)
    if count != len(weights) or not count:
        raise ValueError(
            f"as many weights as states are needed, got {count} states and {len(weights)} weights"
        )
    if planned:
        return planned
    parts = mean.split([shape.numel() for shape in shapes.values()])
    return {
        name: (part if types[name].is_floating_point else part.round()).to(types[name]).view(shape)
        for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }


def class_count_weights(counts: torch.Tensor) -> torch.Tensor:
    """N_k^c / sum_k N_k^c, (clients, classes), from label counts; uniform for a class that no
    client holds.
    """
    total = counts.sum(dim=0)
    return torch.where(total > 0, counts / total.clamp_min(1e-12), 1 / len(counts))
