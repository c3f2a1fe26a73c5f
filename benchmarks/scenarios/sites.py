"""A site: the samples of one data set that it holds, at the size that networks see; what is made of
one or several, and how a pool of samples is shared out among clients.

While a run is planned without the files, data sets have their official sizes and no content.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch

from fedtables.benchmarks.scenarios.configuration import PartitionSettings
from fedtables.datasets import catalogue
from fedtables.datasets.catalogue import ResolvedData
from fedtables.datasets.source import (
    CLASS,
    MAP,
    SEGMENTS,
    DataError,
    DataSource,
    Split,
    annotated,
    annotations_of,
)
from fedtables.federation.client import Shard
from fedtables.federation.data import LabelledSet
from fedtables.federation.parts import ClientPart
from fedtables.federation.tasks.targets import resize_targets, targets_of
from fedtables.federation.training.inputs import Normalisation
from fedtables.federation.windows import resize, sides_of
from fedtables.results.files import digest
from fedtables.results.names import near

Size = int | tuple[int, ...]
"""Pixels of every side of a sample as networks see it, or of each."""


def official_labels(data: ResolvedData) -> dict[str, np.ndarray]:
    """Labels of every split; for planning without the files, those that the source states, or
    balanced labels of the official sizes.
    """
    source = catalogue.source(data.used)
    if data.digest:
        return {name: split.labels for name, split in catalogue.load(data.used).items()}
    return {
        name: np.array(source.class_labels.get(name, np.arange(size) % source.classes))
        for name, size in source.sizes.items()
    }


def official_groups(data: ResolvedData, split: str) -> np.ndarray | None:
    """Whose each sample of a split is, (n,); None where nobody says so. While planning without the
    files each is its own.
    """
    if data.digest:
        return catalogue.load(data.used)[split].groups
    return np.arange(catalogue.source(data.used).sizes[split])


@dataclass(frozen=True)
class Site:
    """The samples of a data set. A scenario derives from it to say what is learnt of them."""

    data: ResolvedData
    size: Size

    @property
    def source(self) -> DataSource:
        """What is stated of the data set."""
        return catalogue.source(self.data.used)

    @property
    def normalise(self) -> Normalisation:
        """How networks see its samples."""
        return Normalisation(self.source.mean, self.source.std)

    @property
    def sides(self) -> tuple[int, ...]:
        """Of a sample, as networks see it."""
        return sides_of(self.size, len(self.source.shape) - 1)

    def stored(self, split: str) -> Split | None:
        """A split as it is on disk; None while planning."""
        return catalogue.load(self.data.used)[split] if self.data.digest else None

    def labels(self, split: str) -> np.ndarray:
        """The class of every sample of a split."""
        return official_labels(self.data)[split]

    def samples(self, split: str) -> np.ndarray:
        """Indices of the site's samples in a split."""
        return np.arange(len(self.labels(split)))

    def test_samples(self, most: int) -> np.ndarray:
        """Indices of the test samples. A limit `most` leaves whole groups, at least one, that have
        about so many samples together. No seed of a run moves them.
        """
        every = self.samples("test")
        if not most or len(every) <= most:
            return every
        rng = np.random.default_rng(int(digest([self.data.asked, "test limit"])[:16], 16))
        groups = self.groups("test", every)
        names = rng.permutation(np.unique(groups))
        chosen = names[: max(1, round(most / len(every) * len(names)))]
        return every[np.isin(groups, chosen)]

    def groups(self, split: str, indices: np.ndarray) -> np.ndarray:
        """Whose each sample is, (n,); each its own where nobody says so, and while planning."""
        held = self.stored(split)
        return indices if held is None or held.groups is None else held.groups[indices]

    def images(self, split: str, indices: np.ndarray, device: str) -> torch.Tensor:
        """Samples of a split as stored, (n, c, *sides)."""
        if device == "meta":
            shape = (len(indices), self.source.shape[0], *self.sides)
            return torch.empty(shape, dtype=getattr(torch, self.source.dtype), device="meta")
        images = catalogue.load(self.data.used)[split].images[indices]
        return resize(torch.from_numpy(images), self.size).to(device)

    def annotation(self, split: str, indices: np.ndarray, name: str, device: str) -> torch.Tensor:
        """Targets of one annotation: classes int64 (n,), or of pixels (n, ..., *sides), segments
        as uint8.
        """
        if name == CLASS:
            return torch.from_numpy(self.labels(split)[indices]).to(device)
        about = annotations_of(self.source)[name]
        if device == "meta":
            shape = (len(indices), *((about.size,) if about.kind == MAP else ()), *self.sides)
            dtypes = {MAP: torch.float32, SEGMENTS: torch.uint8}
            return torch.empty(shape, dtype=dtypes.get(about.kind, torch.int64), device="meta")
        values = annotated(catalogue.load(self.data.used)[split], name)[indices]
        return resize_targets(targets_of(about, values), self.size).to(device)

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
        content = digest(np.ascontiguousarray(indices).astype("<i8").tobytes())
        about = (*self.about(), *more)
        return digest([self.data.used, self.data.digest, split, self.size, content, *about])

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
    images, targets, groups = (
        torch.cat(maps) if len(maps) > 1 else maps[0] for maps in zip(*parts, strict=True)
    )
    about = digest([site.identity(split, indices) for site, indices in held])
    return LabelledSet(images, targets, about, groups)


def names_of(text: str) -> dict[str, str]:
    """What a table's columns call data sets, by their names: `ixi-t1=i+fastmri-t1=f`. Raises
    DataError for anything else.
    """
    pairs = [pair.partition("=") for pair in filter(None, text.split("+"))]
    if not all(name and called for name, _, called in pairs):
        raise DataError(f"{text!r} is not a list of names; write it like ixi-t1=i+fastmri-t1=f")
    return {name: called for name, _, called in pairs}


def check_channels(target: ResolvedData, data: ResolvedData, what: str) -> None:
    """Raise DataError if images of `data`, which are the federation's `what`, have another number
    of channels than those of `target`.
    """
    if catalogue.source(data.used).shape[0] != catalogue.source(target.used).shape[0]:
        raise DataError(
            f"{what} images of {data.used} have another number of channels than those of"
            f" {target.used}"
        )


def limit(indices: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """A random subset of at most `most` indices, in order; all of them if `most` is 0."""
    if not most or len(indices) <= most:
        return indices
    return np.sort(rng.choice(indices, most, replace=False))
