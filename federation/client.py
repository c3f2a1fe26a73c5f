"""A client: a private shard that only code running on the client can reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Concatenate, ParamSpec, TypeVar

import torch

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Shard:
    """A client's private samples: uint8 images (n, c, h, w) and targets (n, ...), on the run's device."""

    images: torch.Tensor
    targets: torch.Tensor


class Client:
    """One client of a federation.

    The server may know its index, its network and how many samples it holds. Label counts are the client's: a method
    whose server uses them sends them as `labels`. The samples are only seen by functions handed to `run`.
    """

    def __init__(self, index: int, role: str, network: str, shard: Shard, label_counts: tuple[int, ...], digest: str):
        self.index = index
        """0, 1, ...; seed streams and stages are named by it."""
        self.role = role
        """The table's name for its kind of network, for example `resnet`."""
        self.network = network
        """The network it trains, for example `resnet8-narrow`."""
        self.size = len(shard.images)
        """Number of samples, n_k."""
        self.label_counts = label_counts
        """Samples per class, N_k^c."""
        self.digest = digest
        """Identifies the shard's content in stage keys."""
        self.__shard = shard

    def run(self, function: Callable[Concatenate[Shard, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run `function(shard, ...)` on the client. What it returns is still the client's: send it by the channel."""
        return function(self.__shard, *args, **kwargs)

    def __repr__(self) -> str:
        return f"Client({self.index}, {self.role}, {self.size} samples)"
