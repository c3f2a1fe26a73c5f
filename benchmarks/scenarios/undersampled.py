"""What a site of slices holds, and what undersampling its k-space leaves of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch

from benchmarks.scenarios.samples import identity, images_of, official_labels
from datasets import catalogue
from datasets.catalogue import ResolvedData
from datasets.source import DataError
from federation.tasks.kspace import limits, random_columns, zero_filled
from federation.training.inputs import unit_range
from results.files import digest
from results.numbers import MOST, Bounds, Share

PART = 500
"""Slices that are transformed at a time."""


@dataclass(frozen=True)
class SliceSettings:
    """`slices.*`: what sites are called, whose test subjects count, what is measured of them."""

    called: str = ""
    """What a table's columns call a data set: `ixi-t1=i`."""
    test: str = ""
    """The sites on whose test subjects, all together, a cell is measured: `b,f`; empty for all."""
    acceleration: Annotated[float, Bounds(1, MOST)] = 4.0
    """Columns for each one that is measured (FedAD, section 4.3.2)."""
    centre: Share = 0.08
    """Share of the columns, in the middle, that are measured always."""
    clamp: float = 0.0
    """Standard deviations of a zero-filled slice from its mean within which it is kept, and the
    truth with it; 0 for no limit."""


@dataclass(frozen=True)
class Site:
    """The subjects of a data set."""

    data: ResolvedData
    how: SliceSettings
    side: int

    def subjects(self, split: str) -> np.ndarray:
        """Whose each slice of a split is, (n,), one subject's after another's; while planning each
        of its own.
        """
        if not self.data.digest:
            return np.arange(len(official_labels(self.data)[split]))
        held = catalogue.load(self.data.used)[split].groups
        if held is None:
            raise DataError(f"{self.data.used} does not say whose its slices are")
        return held

    def columns(self, split: str, indices: np.ndarray) -> torch.Tensor:
        """Which columns are measured of each slice, bool (n, 1, 1, side): in tests the same of all
        slices of a subject, as FL-MRCM's code seeds by file, in training of each its own. No seed
        of a run moves them.
        """
        names = self.subjects(split)[indices] if split == "test" else indices
        drawn = {}
        for name in set(names.tolist()):
            seed = int(digest([self.data.asked, split, name])[:16], 16)
            drawn[name] = np.random.default_rng(seed).random(self.side)
        draws = np.array([drawn[name] for name in names.tolist()]).reshape(-1, 1, 1, self.side)
        return random_columns(torch.from_numpy(draws), self.how.acceleration, self.how.centre)

    def pairs(
        self, split: str, indices: np.ndarray, device: str
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Zero-filled slices and fully sampled ones, both float32 (n, 1, side, side)."""
        stored = images_of(self.data, split, indices, self.side, device)
        seen, truths = self._zero_filled(stored, split, indices), unit_range(stored)
        return self._within(seen, seen), self._within(seen, truths)

    def zero_filled(self, split: str, indices: np.ndarray, device: str) -> torch.Tensor:
        """Zero-filled slices alone, float32 (n, 1, side, side)."""
        stored = images_of(self.data, split, indices, self.side, device)
        seen = self._zero_filled(stored, split, indices)
        return self._within(seen, seen)

    def _within(self, seen: torch.Tensor, slices: torch.Tensor) -> torch.Tensor:
        """Slices clamped by what is seen of them, where `clamp` asks for it."""
        return slices.clamp(*limits(seen, self.how.clamp)) if self.how.clamp else slices

    def _zero_filled(self, stored: torch.Tensor, split: str, indices: np.ndarray) -> torch.Tensor:
        seen = torch.empty(stored.shape, dtype=torch.float32, device=stored.device)
        if not stored.is_meta:
            columns = self.columns(split, indices).to(stored.device)
            parts = (tensor.split(PART) for tensor in (seen, stored, columns))
            for part, slices, measured in zip(*parts, strict=True):
                part.copy_(zero_filled(unit_range(slices), measured))
        return seen

    def identity(self, split: str, indices: np.ndarray) -> str:
        """What identifies these slices and what is measured of them in stage keys."""
        how: list[object] = [self.data.asked, self.how.acceleration, self.how.centre]
        if self.how.clamp:
            how.append(self.how.clamp)
        return identity(self.data, split, indices, self.side, *how)
