"""A site: the samples of one data set that it holds, at the size that networks see; and what is
made of one or several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch

from benchmarks.scenarios.configuration import PartitionSettings
from benchmarks.scenarios.samples import (
    Size,
    identity,
    images_of,
    official_labels,
    targets_at,
)
from benchmarks.scenarios.scenario import ClientPart
from datasets import catalogue
from datasets.catalogue import ResolvedData
from datasets.source import DataError, DataSource, Split
from federation.client import Shard
from federation.data import LabelledSet
from federation.training.inputs import Normalisation
from results.files import digest
from results.names import near


@dataclass(frozen=True)
class Site:
    """The samples of a data set. A scenario derives from it to say what is learnt of them."""

    data: ResolvedData
    size: Size
    """Sides in pixels, as networks see samples."""

    @property
    def source(self) -> DataSource:
        """What is stated of the data set."""
        return catalogue.source(self.data.used)

    @property
    def normalise(self) -> Normalisation:
        """How networks see its samples."""
        return Normalisation(self.source.mean, self.source.std)

    def stored(self, split: str) -> Split | None:
        """A split as it is on disk; None while planning."""
        return catalogue.load(self.data.used)[split] if self.data.digest else None

    def labels(self, split: str) -> np.ndarray:
        """The class of every sample of a split."""
        return official_labels(self.data)[split]

    def samples(self, split: str) -> np.ndarray:
        """Indices of the site's samples in a split."""
        return np.arange(len(self.labels(split)))

    def groups(self, split: str, indices: np.ndarray) -> np.ndarray:
        """Whose each sample is, (n,); each its own where nobody says so, and while planning."""
        held = self.stored(split)
        return indices if held is None or held.groups is None else held.groups[indices]

    def images(self, split: str, indices: np.ndarray, device: str) -> torch.Tensor:
        """Samples as stored, (n, c, *sides)."""
        return images_of(self.data, split, indices, self.size, device)

    def annotation(self, split: str, indices: np.ndarray, name: str, device: str) -> torch.Tensor:
        """Targets of one annotation."""
        return targets_at(self.data, split, indices, name, self.size, device)

    def pairs(
        self, split: str, indices: np.ndarray, device: str
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Samples and targets for training."""
        raise NotImplementedError

    def about(self) -> tuple[object, ...]:
        """What identifies its targets."""
        return ()

    def identity(self, split: str, indices: np.ndarray, *more: object) -> str:
        """What identifies these samples, with their targets and whatever `more` says, in stage
        keys.
        """
        return identity(self.data, split, indices, self.size, *self.about(), *more)

    def client(self, indices: np.ndarray, device: str) -> ClientPart:
        """A client that holds these training samples."""
        images, targets = self.pairs("train", indices, device)
        each = len(images) // max(1, len(indices))
        records, whose = (np.tile(of, each) for of in (indices, self.groups("train", indices)))
        about = self.identity("train", indices)
        return ClientPart(Shard(images, targets), (), about, self.data.used, records, whose)

    def shown(self, partition: PartitionSettings) -> tuple[str, np.ndarray]:
        """The split that public samples come from, and the first of them, as many as the limit
        says.
        """
        split = partition.public_split or "train"
        return split, self.samples(split)[: partition.public_limit or None]


S = TypeVar("S", bound=Site)


def named(sites: Mapping[str, S], names: str, setting: str) -> dict[str, S]:
    """The sites of these names, separated by commas; all if it is empty or `all`. Raises DataError
    for an unknown one, which `setting` names.
    """
    wanted = [*sites] if names in ("", "all") else names.split(",")
    for name in wanted:
        if name not in sites:
            raise DataError(f"{setting}: unknown site {name!r}; {near(name, sites)}")
    return {name: sites[name] for name in wanted}


def together(
    held: Sequence[tuple[Site, np.ndarray]], split: str, device: str, grouped: bool = True
) -> LabelledSet:
    """Samples of several sites, as training samples are, by their groups; a group is one of one
    site. Where they are not `grouped`, each patch is one of its own.
    """
    parts, first = [], 0
    for site, indices in held:
        images, targets = site.pairs(split, indices, device)
        numbers = np.arange(len(images))
        if grouped:
            numbers = np.unique(site.groups(split, indices), return_inverse=True)[1]
        parts.append((images, targets, torch.from_numpy(numbers + first).to(device)))
        first += int(numbers.max(initial=-1)) + 1
    images, targets, groups = (torch.cat(maps) for maps in zip(*parts, strict=True))
    about = digest([site.identity(split, indices) for site, indices in held])
    return LabelledSet(images, targets, about, groups)
