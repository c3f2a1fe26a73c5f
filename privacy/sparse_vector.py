"""The sparse vector technique on a network's update: some entries cross, clipped and noisy.

Li et al., "Privacy-preserving federated brain tumour segmentation" (MLMI 2019), section 2.3. It is
Algorithm 7 of Lyu, Su and Li, "Understanding the sparse vector technique for differential privacy"
(VLDB 2017), with sensitivity D and m entries to upload: threshold + Lap(D/eps1), queries +
Lap(2 m D/eps2), answers + Lap(m D/eps3). An entry that fails is asked again, with new noise and the
old threshold. Three generations of it (docs/howto/privacy.md has their numbers):

`paper`: D = gamma, eps2 = eps1 (2 m gamma)^(2/3); an answer is clipped after its noise, and no
entry is answered twice. Only the formula of eps2 is known; the rest is assumed.

`released`: NVFlare 2.0 to 2.6. D = 2 gamma, eps2 = eps1 (2 m)^(2/3); m entries are drawn from the
accepted ones with replacement; an answer has Lap(2 gamma/eps3), so eps3 is of each of them, and is
clipped after its noise. (Without issue 343 of its first releases.)

`revised`: NVFlare since April 2026 (pull request 4470). The queries' D is gamma; eps1 is the budget
of threshold and queries together, 1 : (2 m)^(2/3); an answer is clipped before its noise, which is
that of `released`, and not again, so that it may lie beyond gamma.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from fedtables.results.names import check_known

PAPER, RELEASED, REVISED = GENERATIONS = ("paper", "released", "revised")

DECLARED = {PAPER: (1.0, 1.0), RELEASED: (2.0, 2.0), REVISED: (1.0, 2.0)}
"""By generation, the sensitivity that noise is scaled for, of an entry's clipped magnitude and of
an answer, over gamma. Whatever changes in a client's data, they are 1 and 2: clipped magnitudes lie
in [0, gamma], clipped entries in [-gamma, gamma]."""


@dataclass(frozen=True)
class SparseVector:
    """Settings of the mechanism."""

    share: float
    """Share of the entries that are uploaded, in (0, 1]."""
    eps1: float
    """Budget of the threshold; of threshold and queries in `revised`. Infinite for no noise."""
    eps3: float
    """Budget of all answers in `paper`, of each one elsewhere. Infinite for no noise."""
    gamma: float
    """Entries are clipped to [-gamma, gamma]; in the unit of the update."""
    tau: float
    """Threshold of their magnitudes, in the same unit."""
    generation: str = RELEASED
    """`paper`, `released` or `revised`."""

    def __post_init__(self) -> None:
        """Raises ValueError for settings that make no sense."""
        check_known(self, generation=GENERATIONS)
        if not 0 < self.share <= 1 or not self.eps1 > 0 or not self.eps3 > 0:
            raise ValueError(f"share lies in (0, 1], eps1 and eps3 are above 0: {self}")
        if not 0 < self.gamma < math.inf or not 0 <= self.tau < math.inf:
            raise ValueError(f"gamma is above 0, tau not below it, both are finite: {self}")


class Parts(NamedTuple):
    """Of one upload, epsilons at delta 0, or scales of the Laplace noise."""

    threshold: float
    queries: float
    answers: float


def uploads(settings: SparseVector, entries: int) -> int:
    """m = ceil(share x entries), the number of entries to upload."""
    return min(entries, math.ceil(settings.share * entries))


def declared(settings: SparseVector, entries: int) -> Parts:
    """What an upload of m of `entries` entries costs by the generation's own count; together the
    sum. It is no promise: how many entries are accepted decides which are drawn, and answers that
    are clipped after their noise have no bound (NVFlare's issue 462).
    """
    m, paper = uploads(settings, entries), settings.generation == PAPER
    ratio = (2 * m * (settings.gamma if paper else 1)) ** (2 / 3)
    first = settings.eps1 / (1 + ratio) if settings.generation == REVISED else settings.eps1
    return Parts(first, first * ratio, settings.eps3 if paper else m * settings.eps3)


def scales(settings: SparseVector, entries: int) -> Parts:
    """D/eps1, 2 m D/eps2 and m D/eps3 (Lyu et al. 2017, Algorithm 7) of the declared budgets."""
    m, budget = uploads(settings, entries), declared(settings, entries)
    magnitude, answer = (settings.gamma * over for over in DECLARED[settings.generation])
    return Parts(
        magnitude / budget.threshold,
        2 * m * magnitude / budget.queries,
        m * answer / budget.answers,
    )


def sanitise(
    update: Tensor, settings: SparseVector, *, generator: torch.Generator | None
) -> tuple[Tensor, Tensor]:
    """What is uploaded of `update` (n,): which entries, bool (n,), and their noisy values (k,), in
    order, of the update's dtype. k is m; fewer where `generation` draws with replacement, or where
    eps1 is infinite and few entries reach the threshold. `generator` is on the update's device; on
    the meta device it is None and k is m. Raises ValueError for an update without entries or of
    another shape.
    """
    if update.ndim != 1 or not len(update):
        raise ValueError(f"an update has the shape (n,), n at least 1, not {tuple(update.shape)}")
    m = uploads(settings, len(update))
    if update.is_meta:
        return torch.empty_like(update, dtype=torch.bool), update.new_empty(m)
    assert generator is not None
    # MPS has no double precision.
    exact = update.to(torch.float32 if update.device.type == "mps" else torch.float64)
    scale = scales(settings, len(update))
    threshold = settings.tau + laplace(exact[:1], scale.threshold, generator)
    magnitudes = exact.clamp(-settings.gamma, settings.gamma).abs()
    passes = first_passes(magnitudes, threshold, scale.queries, generator)
    chosen = drawn(passes, m, settings.generation != PAPER, generator)
    noise = laplace(exact, scale.answers, generator)
    return chosen, answers(exact, noise, settings).to(update.dtype)[chosen]


def laplace(like: Tensor, scale: float, generator: torch.Generator) -> Tensor:
    """Lap(scale) for every entry of `like`, as the difference of two exponentials."""
    first, second = (-torch.log1p(-uniform(like, generator)) for _ in range(2))
    return scale * (first - second)


def uniform(like: Tensor, generator: torch.Generator) -> Tensor:
    """Uniform in [0, 1), of the shape, dtype and device of `like`."""
    return torch.rand(like.shape, generator=generator, dtype=like.dtype, device=like.device)


def passing(magnitudes: Tensor, threshold: Tensor, scale: float) -> Tensor:
    """The chance that a magnitude with Lap(scale) is at or above the threshold, (n,)."""
    apart = threshold - magnitudes
    if not scale:
        return (apart <= 0).to(magnitudes.dtype)
    beyond = 0.5 * torch.exp(-apart.abs() / scale)
    return torch.where(apart > 0, beyond, 1 - beyond)


def first_passes(
    magnitudes: Tensor, threshold: Tensor, scale: float, generator: torch.Generator
) -> Tensor:
    """In which pass over all entries each first reaches the threshold, 1 or more, (n,); infinite
    for one that never does. Passes have new noise: geometric in the chance to pass, and drawn at
    once.
    """
    chance = passing(magnitudes, threshold, scale)
    misses = torch.log1p(-uniform(chance, generator))
    passes = torch.ceil(misses / torch.log1p(-chance)).clamp_min(1)
    return torch.where(chance > 0, passes, math.inf)


def drawn(passes: Tensor, m: int, replacement: bool, generator: torch.Generator) -> Tensor:
    """Which entries are uploaded, bool (n,), given in which pass each first reaches the threshold.
    Passes go on until m entries have been accepted; m of these are drawn, with or without
    `replacement`; fewer than m are all uploaded.
    """
    ordered, order = passes.sort(stable=True)
    accepted = (passes <= ordered[m - 1]) & passes.isfinite()
    number = accepted.sum()
    if replacement:
        positions = (uniform(passes[:m], generator) * number).long()
        taken = order[torch.minimum(positions, (number - 1).clamp_min(0))]
    else:
        places = uniform(passes, generator)
        taken = torch.where(accepted, places, 1.0).argsort(stable=True)[:m]
    chosen = torch.zeros_like(accepted).index_fill(0, taken, True)
    return accepted & (chosen | (number < m))


def answers(update: Tensor, noise: Tensor, settings: SparseVector) -> Tensor:
    """Entries (n,) as released: noisy and then clipped, in `revised` the other way about."""
    if settings.generation == REVISED:
        return update.clamp(-settings.gamma, settings.gamma) + noise
    return (update + noise).clamp(-settings.gamma, settings.gamma)


# -- as they cross --

BITS = (1, 2, 4, 8, 16, 32, 64, 128)


def packed(chosen: Tensor) -> Tensor:
    """A bit for each of `chosen`, bool (n,), eight to a byte: uint8 (ceil(n/8),)."""
    padded = chosen.new_zeros(-(-len(chosen) // 8) * 8, dtype=torch.uint8)
    padded[: len(chosen)] = chosen
    return (padded.view(-1, 8) * padded.new_tensor(BITS)).sum(dim=1, dtype=torch.uint8)


def unpacked(bits: Tensor, values: Tensor, entries: int) -> Tensor:
    """What `packed` bits and chosen `values` (k,) stand for: (entries,), 0 elsewhere."""
    chosen = (bits[:, None] & bits.new_tensor(BITS)).view(-1)[:entries] != 0
    whole = values.new_zeros(entries)
    if not values.is_meta:
        whole[chosen] = values
    return whole
