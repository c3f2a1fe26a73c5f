"""A client: a private shard that only code running on the client can reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import torch

from federation import watching
from federation.samples import on_client
from federation.tasks.base import Task
from federation.training.loops import Normalisation

P = ParamSpec("P")
R = TypeVar("R")


class Shard:
    """A client's private samples: a view into a set of samples, so that a thousand clients take no
    more memory than one.
    """

    def __init__(
        self, images: torch.Tensor, targets: torch.Tensor, indices: torch.Tensor | None = None
    ):
        """Stored images (n, c, *sides) and targets (n, ...), on the run's device; the client's are
        those at `indices`, or all.
        """
        self._images = images
        self._targets = targets
        self._indices = (
            torch.arange(len(images), device=images.device) if indices is None else indices
        )

    def __len__(self) -> int:
        return len(self._indices)

    @property
    def images(self) -> torch.Tensor:
        """A copy of the images as they are stored, (n, c, *sides)."""
        return _taken(self._images, self._indices)

    @property
    def targets(self) -> torch.Tensor:
        """A copy of the targets, (n, ...)."""
        return _taken(self._targets, self._indices)

    def images_at(self, positions: torch.Tensor) -> torch.Tensor:
        """A copy of the images at some positions (m,) of the shard; (m, c, *sides)."""
        return self._images[self._indices[positions]]

    def targets_at(self, positions: torch.Tensor) -> torch.Tensor:
        """A copy of the targets at some positions (m,) of the shard; (m, ...)."""
        return self._targets[self._indices[positions]]


def _taken(samples: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """`samples[indices]`; while planning, where indexing takes long, its shape alone."""
    if samples.is_meta:
        return samples.new_empty((len(indices), *samples.shape[1:]))
    return samples[indices]


class Client:
    """One client of a federation.

    The server may know its index, its network and how many samples it holds. Label counts are the
    client's: a method whose server uses them sends them as `labels`. The samples are only seen by
    functions handed to `run`.
    """

    def __init__(
        self,
        index: int,
        role: str,
        network: str,
        shard: Shard,
        label_counts: tuple[int, ...],
        digest: str,
        task: Task | None = None,
        normalise: Normalisation | None = None,
    ):
        self.index = index
        """0, 1, ...; seed streams and stages are named by it."""
        self.role = role
        """The table's name for its kind of network, for example `resnet`."""
        self.network = network
        """The network it trains, for example `resnet8-narrow`."""
        self.size = len(shard)
        """Number of samples, n_k."""
        self.label_counts = label_counts
        """Samples per class, N_k^c; of findings, the samples that have each of the federation's."""
        self.digest = digest
        """Identifies the shard's content in stage keys."""
        self.task = task
        """What its own samples are labelled for, where that is another task than the federation's;
        only the client knows."""
        self.normalise = normalise
        """How its own network sees images, where its samples are of another data set than the
        federation's."""
        self.__shard = shard

    def run(
        self, function: Callable[Concatenate[Shard, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Run `function(shard, ...)` on the client. What it returns is still the client's: send it
        by the channel.
        """
        with on_client(), watching.on_client(self.index):
            return function(self.__shard, *args, **kwargs)

    def __repr__(self) -> str:
        return f"Client({self.index}, {self.role}, {self.size} samples)"
