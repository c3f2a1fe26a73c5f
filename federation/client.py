"""A client: a private shard that only code running on the client can reach."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Concatenate, ParamSpec, TypeVar

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from fedtables.datasets.access import AccessError, is_fitting
from fedtables.federation.costs import TOGETHER, client_here
from fedtables.federation.data import Change, fetch
from fedtables.federation.samples import on_client
from fedtables.federation.tasks.base import Task
from fedtables.federation.training.inputs import Normalisation

P = ParamSpec("P")
R = TypeVar("R")


class Shard:
    """A client's private samples: a view into a set of samples, so that a thousand clients take no
    more memory than one.

    While a method fits they are seen by what runs on the client alone, and known by their storage
    as long as it runs, so that they do not leave by what it returns.
    """

    def __init__(
        self, images: torch.Tensor, targets: torch.Tensor, indices: torch.Tensor | None = None
    ):
        """Stored images (n, c, *sides) and targets (n, ...); `indices` or all."""
        self._images = images
        self._targets = targets
        self._indices = (
            torch.arange(len(images), device=images.device)
            if indices is None
            else indices.to(images.device)
        )
        self.runs = 0
        """How many functions run on the client now."""
        self.closed = False
        """Whether they do not see the samples, but in `opened`."""
        self._seen: list[StorageWeakRef] = []

    def __len__(self) -> int:
        return len(self._indices)

    def map(self, change: Change) -> Shard:
        """The same with `change` of the samples that it is a view into. Raises AccessError while a
        method fits.
        """
        if is_fitting():
            raise AccessError("a client has its own samples alone: take `images` and `targets`")
        return Shard(change(self._images), change(self._targets), self._indices)

    @property
    def images(self) -> torch.Tensor:
        """A copy of the images as and where they are stored, (n, c, *sides)."""
        return self._shown(fetch(self._images, self._indices))

    @property
    def targets(self) -> torch.Tensor:
        """A copy of the targets where they are stored, (n, ...)."""
        return self._shown(fetch(self._targets, self._indices))

    def images_at(self, positions: torch.Tensor) -> torch.Tensor:
        """A copy of the images at some positions (m,), on their device; (m, c, *sides)."""
        return self._shown(fetch(self._images, fetch(self._indices, positions)))

    def targets_at(self, positions: torch.Tensor) -> torch.Tensor:
        """A copy of the targets at some positions (m,), on their device; (m, ...)."""
        return self._shown(fetch(self._targets, fetch(self._indices, positions)))

    def _shown(self, samples: torch.Tensor) -> torch.Tensor:
        if is_fitting():
            if not self.runs:
                raise AccessError(
                    "a client's samples are seen by functions given to client.run, while they run"
                )
            if self.closed:
                raise AccessError(
                    "under dp-sgd a client's samples are for its private training alone: what else"
                    " is learnt of them has no noise, and no epsilon holds for it"
                )
            if not samples.is_meta:  # as in a plan, where what crosses is not copied
                self._seen.append(StorageWeakRef(samples.untyped_storage()))
        return samples

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Samples are seen, for what trains privately."""
        before, self.closed = self.closed, False
        try:
            yield
        finally:
            self.closed = before

    def leaves_by(self, value: object) -> bool:
        """Whether `value`, or what it lists, is the shard or has storage of seen samples."""
        seen = {reference.cdata for reference in self._seen if not reference.expired()}
        return any(
            part is self
            or (isinstance(part, torch.Tensor) and part.untyped_storage()._cdata in seen)
            for part in _listed(value)
        )

    def forget(self) -> None:
        """Take no note any longer of what was seen."""
        self._seen.clear()


def _listed(value: object) -> Iterator[object]:
    """`value`, and all that it lists at any depth."""
    yield value
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, list | tuple | set):
        for part in value:
            yield from _listed(part)


@dataclass(eq=False)
class Client:
    """One client of a federation.

    The server may know its index, its network and how many samples it holds. Label counts are the
    client's: a method whose server uses them sends them as `labels`. The samples are only seen by
    functions handed to `run`.
    """

    index: int
    """Its number, from 0; streams and stages are named by it."""
    role: str
    """The table's name for its kind of network, for example `resnet`."""
    network: str
    """The network it trains, for example `resnet8-narrow`."""
    shard: InitVar[Shard]
    label_counts: tuple[int, ...]
    """Samples per class, N_k^c; of findings, the samples that have each of the federation's."""
    digest: str
    """Identifies the shard's content in stage keys."""
    task: Task | None = None
    """What its own samples are labelled for, where that is another task than the federation's;
    only the client knows."""
    normalise: Normalisation | None = None
    """How its own network sees images, where these are of another data set."""
    size: int = field(init=False)
    """Number of samples, n_k."""

    def __post_init__(self, shard: Shard) -> None:
        self.__shard = shard
        self.size = len(shard)

    def close(self) -> None:
        """From now on its samples are seen by what trains privately alone."""
        self.__shard.closed = True

    def run(
        self, function: Callable[Concatenate[Shard, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Run `function(shard, ...)` on the client. What it returns is still the client's: send it
        by the channel.

        While a method fits it raises AccessError if samples themselves are returned, and inside
        what runs on another client.
        """
        return Client.run_together([self], lambda shards: function(shards[0], *args, **kwargs))

    @staticmethod
    def run_together(clients: Sequence[Client], function: Callable[[Sequence[Shard]], R]) -> R:
        """Run `function(shards)` on several clients at once; what it returns is theirs."""
        before, shards = client_here(), [client.__shard for client in clients]
        others = [client.index for client in clients if client.index != before]
        if before not in (None, TOGETHER) and others and is_fitting():
            raise AccessError(f"what runs on client {before} cannot run on client {others[0]}")
        for shard in shards:
            shard.runs += 1
        try:
            with on_client(clients[0].index if len(clients) == 1 else TOGETHER):
                result = function(shards)
            for client in clients:
                if is_fitting() and client.__shard.leaves_by(result):
                    raise AccessError(
                        f"samples leave client {client.index} as what its function returns; work"
                        " on them in the function"
                    )
        finally:
            for shard in shards:
                shard.runs -= 1
                if not shard.runs:
                    shard.forget()
        return result
