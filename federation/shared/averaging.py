"""What clients send, side by side: averages of network states, weights for averages of outputs,
answers as bytes, and attention maps on one grid and in one task's classes.
"""

from collections.abc import Iterable, Mapping, Sequence

import torch
import torch.nn.functional as F

from fedtables.federation.tasks.base import Task
from fedtables.federation.tasks.images import placed


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
