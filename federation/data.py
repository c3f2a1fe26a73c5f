"""What parties hold: sets of samples, and trained networks as they are kept and sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import nn

from fedtables.federation.costs import active_meter
from fedtables.federation.windows import Window, patches

MOST_ON_DEVICE = 24 * 2**30
"""Bytes of a run's samples beyond which they stay in host memory, and reach a GPU by batch."""

Change = Callable[[torch.Tensor], torch.Tensor]


def fetch(
    samples: torch.Tensor, positions: torch.Tensor, device: torch.device | None = None
) -> torch.Tensor:
    """`samples` (n, ...) at `positions` int64 (m,), on the device of the positions or on another,
    wherever the samples lie: (m, ...). While planning, where indexing takes long, the shape alone.
    """
    device = device or positions.device
    if samples.is_meta:
        return samples.new_empty((len(positions), *samples.shape[1:]))
    if samples.device == device:
        return samples[positions.to(device)]
    shape, pinned = (len(positions), *samples.shape[1:]), device.type == "cuda"
    batch = torch.empty(shape, dtype=samples.dtype, device=samples.device, pin_memory=pinned)
    torch.index_select(samples, 0, positions.to(samples.device), out=batch)
    return batch.to(device, non_blocking=pinned)


def mapped(planned: torch.Tensor) -> torch.Tensor:
    """A tensor of a plan, marked as one that a run maps from disk."""
    planned.mapped = True  # type: ignore[attr-defined]
    return planned


@dataclass(frozen=True)
class TrainingSet:
    """What a network is trained on."""

    images: torch.Tensor
    """As they are stored, (n, c, *sides)."""
    targets: torch.Tensor
    """(n, ...)."""
    weights: torch.Tensor | None = None
    """What each sample's loss is multiplied by, (n,); None for 1."""

    def __len__(self) -> int:
        return len(self.images)


@dataclass(frozen=True)
class PublicData:
    """The public set: images, and no labels at all."""

    images: torch.Tensor
    """As stored, (n, c, *sides); those of a large set in host memory."""
    digest: str
    """Identifies the content in stage keys."""
    window: Window | None = None
    """How a network sees images larger than it takes, when a client answers for them; None where it
    takes them whole."""
    patches: int = 0
    """Patches along a side of such an image in training; 0 for as few as cover it."""

    def cut(self, maps: torch.Tensor) -> torch.Tensor:
        """What is trained on of images or of answers for them, (n, c, *sides): their patches, all
        of them in one order, where the images lie; where networks take images whole, what is given.
        """
        if self.window is None:
            return maps
        cut = patches(maps.to(self.images.device), self.window.sides, self.patches)
        meter = active_meter()
        return cut if meter is None else meter.keep(cut, meter.as_samples(cut.nbytes))

    def map(self, change: Change) -> PublicData:
        """The same with `change` of the images."""
        return replace(self, images=change(self.images))

    def __len__(self) -> int:
        return len(self.images)


class NoPublicData(PublicData):
    """Of a server that has no public images. Raises ValueError for who asks for them."""

    def __init__(self) -> None:
        object.__setattr__(self, "digest", "none")

    def __repr__(self) -> str:
        return "NoPublicData()"

    def map(self, change: Change) -> PublicData:
        return self

    @property
    def images(self) -> torch.Tensor:
        raise ValueError("this method needs public images at the server: give `public`")


@dataclass(frozen=True)
class LabelledSet:
    """Images with their targets: the test set, or what the server holds itself."""

    images: torch.Tensor
    targets: torch.Tensor
    digest: str
    groups: torch.Tensor | None = None
    """Whose each image is (n,), if metrics are to be aggregated by that too."""
    window: Window | None = None
    """How a network sees images larger than it takes; None where it takes them whole."""
    places: torch.Tensor | None = None
    """Of findings, at which pixels each is, bool (n, findings, height, width), if that is known."""

    def map(self, change: Change) -> LabelledSet:
        """The same with `change` of every tensor."""
        return replace(
            self,
            images=change(self.images),
            targets=change(self.targets),
            groups=None if self.groups is None else change(self.groups),
            places=None if self.places is None else change(self.places),
        )


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
    """Digest of all that determined the weights, by which stages made of them are keyed."""
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
