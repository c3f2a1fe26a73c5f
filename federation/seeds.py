"""Separate seed axes: a paper's "three split seeds" moves one of them and leaves the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from fedtables.results.files import digest

AXES = ("partition", "weights", "sampling", "shuffling", "noise", "attack")


@dataclass(frozen=True)
class Seeds:
    """One seed for each kind of randomness. Streams have names, so no number depends on the order
    of calls.
    """

    partition: int = 0
    """Which client holds which samples."""
    weights: int = 0
    """Initial weights of networks."""
    sampling: int = 0
    """Which clients take part in a round."""
    shuffling: int = 0
    """Order of mini-batches, augmentation, dropout."""
    noise: int = 0
    """Noise of differential privacy."""
    attack: int = 0
    """Starting points of privacy attacks."""

    @classmethod
    def moving(cls, axes: tuple[str, ...], seed: int) -> Seeds:
        """All axes at 0 but `axes`, which are at `seed`. Raises TypeError for an unknown axis."""
        return cls(**dict.fromkeys(axes, seed))

    def number(self, axis: str, *names: object) -> int:
        """A 63-bit seed for the stream `names` of `axis`: a hash, so neighbours are unrelated."""
        return int(digest([axis, getattr(self, axis), [str(n) for n in names]])[:16], 16) >> 1

    def numpy(self, axis: str, *names: object) -> np.random.Generator:
        """The NumPy generator of a named stream."""
        return np.random.default_rng(self.number(axis, *names))

    def torch(
        self, axis: str, *names: object, device: torch.device | str = "cpu"
    ) -> torch.Generator:
        """The torch generator of a named stream, on `device`."""
        return torch.Generator(device).manual_seed(self.number(axis, *names))


class Stream:
    """Draws from one named stream, on the run's device; only shapes on the `meta` device."""

    def __init__(self, generator: torch.Generator | None, device: torch.device):
        self.generator = generator
        self.device = device

    def choose(self, population: int, size: int) -> torch.Tensor:
        """`size` indices below `population`, drawn with replacement."""
        return torch.randint(population, (size,), generator=self.generator, device=self.device)

    def shuffled(self, population: int) -> torch.Tensor:
        """The indices below `population` in random order."""
        return torch.randperm(population, generator=self.generator, device=self.device)

    def uniform(self, *shape: int) -> torch.Tensor:
        """Numbers uniform in [0, 1)."""
        return torch.rand(shape, generator=self.generator, device=self.device)

    def normal(self, *shape: int) -> torch.Tensor:
        """Standard normal numbers."""
        return torch.randn(shape, generator=self.generator, device=self.device)
