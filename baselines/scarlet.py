"""SCARLET: soft-label caching and sharpening for communication-efficient federated distillation
(Azuma et al., TMC 2026).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import torch
from torch import nn

from fedtables.baselines.ds_fl import DSFL, Pairs
from fedtables.federation.federation import Federation
from fedtables.federation.shared.consensus import enhanced_entropy_reduction
from fedtables.privacy.plan import DP_SGD
from fedtables.results.numbers import MOST_WHOLE, Bounds, Positive

CACHED, NEWLY_CACHED, EXPIRED = 0, 1, 2
"""What a signal says of a chosen image: all have its label; all store the one that comes; all drop
theirs and learn the one that comes."""


class Cache(nn.Module):
    """A party's labels of public images, and the round each was stored in; rounds are on the CPU,
    and known in a plan too.
    """

    labels: torch.Tensor
    """(public images, classes, ...)."""
    rounds: torch.Tensor
    """(public images,), 0 where no label is stored."""
    synchronised: torch.Tensor
    """The last round that the party took part in, (); the server has seen it."""

    def __init__(self, labels: torch.Tensor):
        super().__init__()
        self.register_buffer("labels", labels)
        self.register_buffer("rounds", torch.zeros(len(labels), dtype=torch.int64))
        self.register_buffer("synchronised", torch.zeros((), dtype=torch.int64))

    def store(self, positions: torch.Tensor, rounds: torch.Tensor | int, new: torch.Tensor) -> None:
        """Keep labels `new` (n, classes, ...) of `rounds` for the images at positions (n,)."""
        self.labels[positions.to(new.device)] = new
        self.rounds[positions] = rounds

    def signals(self, chosen: torch.Tensor, number: int, duration: int) -> torch.Tensor:
        """What holds in round `number` for the images at `chosen` (n,), uint8 (n,): a label stored
        in round s is valid while number - s <= duration.
        """
        stored = self.rounds[chosen]
        kept = torch.where(number - stored <= duration, CACHED, EXPIRED)
        return torch.where(stored == 0, NEWLY_CACHED, kept).to(torch.uint8)

    def update(
        self, chosen: torch.Tensor, signals: torch.Tensor, fresh: torch.Tensor, number: int
    ) -> torch.Tensor:
        """Do what `signals` (n,) say, with `fresh` labels of requested images in their order.

        Returns the labels (n, classes, ...) to learn, of requested images first, then of cached.
        """
        requested, newly = chosen[signals != CACHED], signals[signals != CACHED] == NEWLY_CACHED
        self.rounds[requested] = 0
        self.store(requested[newly], number, fresh[newly.nonzero().flatten().to(fresh.device)])
        self.synchronised.fill_(number)
        return torch.cat([fresh, self.labels[chosen[signals == CACHED].to(fresh.device)]])


@dataclass(frozen=True)
class SCARLET(DSFL):
    """DS-FL in which clients answer only for images without a valid label in the caches, and labels
    are sharpened by a power.

    An expired label is dropped and not replaced: the next request stores one (released code,
    branch `reproducibility`). A client that returns first gets what was stored in its absence. The
    ledger has the signals, a byte for each chosen image, as `labels`. They also say what to answer;
    the released code sends lists of positions as well, which here all draw from one seed.
    """

    title = "SCARLET"
    protected: ClassVar[Mapping[str, frozenset[str]]] = {DP_SGD: DSFL.sends}

    temperature: Positive = field(default=0.1, init=False, repr=False)
    """Not used: DS-FL's."""
    beta: Positive = 2.0
    """Exponent of the enhanced entropy reduction (released configuration; tuned in the paper)."""
    duration: Annotated[int, Bounds(0, MOST_WHOLE)] = 50
    """D, for how many rounds a cached label is valid (released configuration)."""

    def kept(self, federation: Federation, clients: Sequence[int]) -> dict[str, Any]:
        images, task = federation.public.images, federation.task
        shape = (len(images), task.outputs, *(images.shape[2:] if task.dense else ()))
        owners = ["server", *(f"client-{index}" for index in clients)]
        device = federation.networks.device
        return {f"cache {owner}": Cache(torch.zeros(shape, device=device)) for owner in owners}

    def exchange(
        self, federation: Federation, number: int, pairs: Pairs, chosen: torch.Tensor, kept: Any
    ) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
        server, channel = kept["cache server"], federation.channel
        caches = [kept[f"cache client-{client.index}"] for client, _ in pairs]
        signals = server.signals(chosen, number, self.duration)
        told = []
        for (client, _), cache in zip(pairs, caches, strict=True):
            lacking = (server.rounds > cache.synchronised).nonzero().flatten()
            if len(lacking):
                missed = {"positions": lacking, "rounds": server.rounds[lacking]}
                missed["labels"] = server.labels[lacking.to(server.labels.device)]
                missed = channel.down(client.index, "logits", missed)
                cache.store(missed["positions"], missed["rounds"], missed["labels"])
            told.append(channel.down(client.index, "labels", {"signals": signals})["signals"])
        requested = chosen[signals != CACHED]
        fresh, received = server.labels[:0], [server.labels[:0] for _ in pairs]
        if len(requested):
            fresh = self.agree(federation, pairs, requested)
            received = [
                channel.down(client.index, "logits", {"labels": fresh})["labels"]
                for client, _ in pairs
            ]
        return (
            torch.cat([requested, chosen[signals == CACHED]]),
            server.update(chosen, signals, fresh, number),
            [
                cache.update(chosen, signal, own, number)
                for cache, signal, own in zip(caches, told, received, strict=True)
            ],
        )

    def sharpened(self, mean: torch.Tensor) -> torch.Tensor:
        return enhanced_entropy_reduction(mean, self.beta)
