"""What clients say of public images, and what a student loses by it (FedAD, Eq. 4 to 9)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fedtables.federation.data import fetch
from fedtables.federation.shared.averaging import attention_bounds, class_count_weights

Cut = Callable[[torch.Tensor], torch.Tensor]
"""Takes answers for whole images (n, c, *sides), and gives those for their patches."""


def importance_weights(counts: torch.Tensor) -> torch.Tensor:
    """Eq. 4: N_k^c / sum_k N_k^c, (clients, C); all 0 for a class that no client holds."""
    return torch.where(counts.sum(dim=0) > 0, class_count_weights(counts), 0.0)


def ensemble_logits(logits: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Eq. 4: the sum of logits (clients, n, C) or (clients, n, C, *sides) with weights (clients,
    C).

    Logits whose weight is 0 do not count, whatever they are: NaN where a client does not know the
    class.
    """
    shares = weights.view(len(weights), 1, -1, *[1] * (logits.ndim - 3))
    return (torch.where(shares > 0, logits, 0.0) * shares).sum(dim=0)


def soft_mask(attention: torch.Tensor, rho: float, threshold: float) -> torch.Tensor:
    """Eq. 8: T(A) = 1 / (1 + exp(-rho (A - b)))."""
    return (rho * (attention - threshold)).sigmoid()


def lower_loss(
    attention: torch.Tensor,
    consensus: torch.Tensor,
    rho: float,
    threshold: float,
    scale: str = "printed",
) -> torch.Tensor:
    """Eq. 7, (n, C): minus the student's soft-masked maps (n, C, h, w), averaged by the weights I;
    0 where I is 0 everywhere.

    With the factor 1 / HW if `scale` is `printed`, without if it is `mean`.
    """
    return _support(consensus, soft_mask(attention, rho, threshold), scale)


def upper_loss(
    attention: torch.Tensor,
    diversity: torch.Tensor,
    rho: float,
    threshold: float,
    scale: str = "printed",
) -> torch.Tensor:
    """Eq. 9, (n, C): minus the soft-masked U, averaged by the student's maps; else as Eq. 7."""
    return _support(attention, soft_mask(diversity, rho, threshold), scale)


def _support(weights: torch.Tensor, values: torch.Tensor, scale: str) -> torch.Tensor:
    """Minus the weighted mean (n, C) of maps (n, C, *sides); times 1 / HW for `printed`."""
    sides = tuple(range(2, weights.ndim))
    total = weights.sum(dim=sides)
    mean = (weights * values).sum(dim=sides) / torch.where(total > 0, total, 1.0)
    return -mean / (math.prod(weights.shape[2:]) if scale == "printed" else 1)


def logit_loss(student: torch.Tensor, ensemble: torch.Tensor) -> torch.Tensor:
    """Eq. 5, (n, C): the absolute difference of logits (n, C), class by class as Eq. 12 sums it; of
    maps the mean over pixels.

    The paper names no order of the norm; of a single number all are the same.
    """
    difference = (student - ensemble).abs()
    sides = tuple(range(2, difference.ndim))
    return difference.mean(dim=sides) if sides else difference


@dataclass(frozen=True)
class Ensemble:
    """What the clients say together of n public images."""

    logits: torch.Tensor
    """Of Eq. 4; (n, C), or (n, C, *sides) of a dense task."""
    known: torch.Tensor
    """Which classes any client holds; bool (C,)."""
    consensus: torch.Tensor | None = None
    """I of Eq. 6, (n, C, h, w); None without bounds."""
    diversity: torch.Tensor | None = None
    """U of Eq. 6."""

    def at(self, images: torch.Tensor) -> Ensemble:
        """The same for some of the images (m,), on their device."""
        return self.cut(lambda said: fetch(said, images))

    def cut(self, cut: Cut) -> Ensemble:
        """The same for what the server trains on of larger images."""
        if self.consensus is None or self.diversity is None:
            return Ensemble(cut(self.logits), self.known)
        return Ensemble(cut(self.logits), self.known, cut(self.consensus), cut(self.diversity))


def joined(parts: Sequence[Ensemble]) -> Ensemble:
    """What is said of all images, of what is said of parts of them."""
    first, *others = parts
    if not others:
        return first

    def whole(name: str) -> Any:
        own = [getattr(part, name) for part in parts]
        return None if own[0] is None else torch.cat(own)

    return Ensemble(whole("logits"), first.known, whole("consensus"), whole("diversity"))


@dataclass(frozen=True)
class Received:
    """Answers of clients for n public images, as they arrive."""

    logits: Sequence[torch.Tensor]
    """Of each client (n, C, ...); NaN for a class that a client's label set lacks."""
    maps: Sequence[torch.Tensor]
    """Attention of each (n, C, h, w); empty where clients send none."""
    counts: torch.Tensor
    """N_k^c, (clients, C)."""

    def of(self, part: slice) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Logits and attention for some of the images."""
        return [said[part] for said in self.logits], [seen[part] for seen in self.maps]


@dataclass(frozen=True)
class Answers:
    """What each client has said of n public images."""

    logits: torch.Tensor
    """(clients, n, C, ...); NaN for a class that a client's label set lacks."""
    maps: torch.Tensor | None
    """Attention (clients, n, C, h, w); None without bounds."""
    counts: torch.Tensor
    """N_k^c, (clients, C)."""

    def some(self, clients: torch.Tensor, images: torch.Tensor) -> Answers:
        """The answers of some clients (k,) for some images (m,), on their device."""
        where, maps = self.logits.device, self.maps
        chosen = (clients.to(where)[:, None], images.to(where))
        return Answers(
            self.logits[chosen].to(images.device),
            None if maps is None else maps[chosen].to(images.device),
            self.counts[clients],
        )

    def cut(self, cut: Cut) -> Answers:
        """The answers for what the server trains on of larger images."""
        maps = None if self.maps is None else torch.stack([cut(seen) for seen in self.maps])
        return Answers(torch.stack([cut(said) for said in self.logits]), maps, self.counts)

    def ensemble(self) -> Ensemble:
        """Eq. 4 and 6."""
        holders = self.counts > 0
        bounds = () if self.maps is None else attention_bounds(self.maps, holders)
        logits = ensemble_logits(self.logits, importance_weights(self.counts))
        return Ensemble(logits, holders.any(dim=0), *bounds)


@dataclass(frozen=True)
class Asked:
    """Clients that answer again for each batch, since answers for all images are not kept."""

    answer: Callable[[torch.Tensor], Answers | Ensemble]
    """What they say of the images of these numbers (m,)."""
