"""Reconstruction of slices at several sites from undersampled k-space (FedAD, section 4.3): a data
set is a site, and its subjects are a client's.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import torch

from fedtables.benchmarks.scenarios.configuration import Configuration, read_section
from fedtables.benchmarks.scenarios.scenario import DataSets
from fedtables.benchmarks.scenarios.sites import (
    Site,
    check_channels,
    limit,
    named,
    names_of,
    together,
)
from fedtables.datasets import partitions
from fedtables.datasets.catalogue import ResolvedData
from fedtables.datasets.decoded import is_kept, values_of
from fedtables.datasets.source import DataError
from fedtables.federation.data import LabelledSet, PublicData, mapped
from fedtables.federation.parts import Parts
from fedtables.federation.seeds import Seeds
from fedtables.federation.tasks.values import Reconstruction, limits, random_columns, zero_filled
from fedtables.federation.training.inputs import Normalisation, unit_range
from fedtables.results.files import digest
from fedtables.results.numbers import MOST, Bounds, Share
from fedtables.results.sourcecode import code_digest

TASKS = ("reconstruction",)
"""Values of `data.task` that are this scenario's."""
PART = 500
"""Slices that are transformed at a time."""
MADE_BY = ("tasks.values", "training.inputs", "windows")
"""Modules of what makes a slice of what is stored."""


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
class SliceSite(Site):
    """The subjects of a data set, and what undersampling leaves of their slices."""

    size: int
    how: SliceSettings

    def groups(self, split: str, indices: np.ndarray) -> np.ndarray:
        """Whose each slice is, one subject's after another's; while planning each of its own."""
        held = self.stored(split)
        if held is not None and held.groups is None:
            raise DataError(f"{self.data.used} does not say whose its slices are")
        return super().groups(split, indices)

    def columns(self, split: str, indices: np.ndarray) -> torch.Tensor:
        """Which columns are measured of each slice, bool (n, 1, 1, side): in tests the same of all
        slices of a subject, as FL-MRCM's code seeds by file, in training of each its own. No seed
        of a run moves them.
        """
        names = self.groups(split, indices) if split == "test" else indices
        drawn = {}
        for name in set(names.tolist()):
            seed = int(digest([self.data.asked, split, name])[:16], 16)
            drawn[name] = np.random.default_rng(seed).random(self.size)
        draws = np.array([drawn[name] for name in names.tolist()]).reshape(-1, 1, 1, self.size)
        return random_columns(torch.from_numpy(draws), self.how.acceleration, self.how.centre)

    def pairs(
        self, split: str, indices: np.ndarray, device: str
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Zero-filled slices and fully sampled ones, both float32 (n, 1, side, side)."""
        return (
            self.slices(split, indices, device, seen=True),
            self.slices(split, indices, device, seen=False),
        )

    def slices(self, split: str, indices: np.ndarray, device: str, *, seen: bool) -> torch.Tensor:
        """Zero-filled slices, if they are what is `seen`, or fully sampled ones."""
        shape = (len(indices), self.source.shape[0], *self.sides)
        if device == "meta":
            planned = torch.empty(shape, device="meta")
            return mapped(planned) if is_kept(shape) else planned

        def fill(values: np.ndarray) -> None:
            for first in range(0, len(indices), PART):
                part = slice(first, first + PART)
                truths = unit_range(self.images(split, indices[part], "cpu"))
                found = truths
                if seen or self.how.clamp:
                    found = zero_filled(truths, self.columns(split, indices[part]))
                if self.how.clamp:
                    bounds = limits(found, self.how.clamp)
                    found = (found if seen else truths).clamp(*bounds)
                values[part] = found.numpy()

        code = [code_digest(f"fedtables.federation.{module}") for module in MADE_BY]
        key = digest([self.identity(split, indices), seen, code])
        return torch.from_numpy(values_of(key, shape, fill)).to(device)

    def about(self) -> tuple[object, ...]:
        """Of the slices, and of what is measured of them."""
        clamp = (self.how.clamp,) if self.how.clamp else ()
        return (self.data.asked, self.how.acceleration, self.how.centre, *clamp)


def sites_of(
    configuration: Configuration, sources: Sequence[ResolvedData], names: str, setting: str
) -> dict[str, SliceSite]:
    """The sites of these names, separated by commas, all if it is empty. Raises DataError for an
    unknown one, which `setting` names.
    """
    how = read_section(configuration.others, "slices", SliceSettings)
    called = names_of(how.called)
    side = configuration.data.image_size
    known = {called.get(data.asked, data.asked): SliceSite(data, side, how) for data in sources}
    if len(known) < len(sources):
        raise DataError(f"slices.called: {how.called!r} gives two data sets one name")
    for name, site in known.items():
        shape = site.source.shape
        if shape[0] != 1 or len(shape) != 3:
            raise DataError(
                f"{name}: {site.source.title} has samples of {shape}, and reconstruction is of"
                " slices with one channel"
            )
    return named(known, names, setting)


def tested(configuration: Configuration, sources: Sequence[ResolvedData]) -> dict[str, SliceSite]:
    """The sites on whose test subjects a cell is measured. Raises DataError for an unknown one."""
    names = read_section(configuration.others, "slices", SliceSettings).test
    return sites_of(configuration, sources, names, "slices.test")


def test_sets(
    configuration: Configuration, sources: Sequence[ResolvedData], device: str
) -> dict[str, LabelledSet]:
    """The test subjects on which a cell is measured, those of several sites together. Raises
    DataError for an unknown site.
    """
    sites = tested(configuration, sources)
    return {",".join(sites): _subjects(configuration, [*sites.values()], device)}


def _subjects(configuration: Configuration, sites: Sequence[SliceSite], device: str) -> LabelledSet:
    most = configuration.partition.test_limit
    return together([(site, site.test_samples(most)) for site in sites], "test", device)


def parts(configuration: Configuration, data: DataSets, seeds: Seeds, device: str) -> Parts:
    """A client for every site that trains, without the subjects that the server validates on.
    Raises DataError for absent or damaged data, PartitionError for another division.
    """
    partition = configuration.partition
    sources = (data.target, *data.others)
    sites = sites_of(configuration, sources, str(configuration.data.train), "data.train")
    if partition.kind != "by-site" or partition.clients != len(sites):
        raise partitions.PartitionError(
            f"slices are divided by-site, here among {len(sites)} clients, not {partition.kind}"
            f" among {partition.clients}; set partition.kind and partition.clients"
        )
    clients, validation = [], []
    for name, site in sites.items():
        drawn = seeds.numpy("partition", name, "pool limit")
        pool = limit(site.samples("train"), partition.pool_limit, drawn)
        drawn = seeds.numpy("partition", name, "validation")
        groups = site.groups("train", pool)
        kept, rest = partitions.split_groups(groups, partition.validation_share, drawn)
        clients.append(site.client(pool[rest], device))
        validation.append((site, pool[kept]))
    (_, first), *further = sites_of(configuration, sources, "", "").items()
    return Parts(
        clients=clients,
        public=_public(configuration, data, first, device),
        test=_subjects(configuration, [first], device),
        further_tests={name: _subjects(configuration, [site], device) for name, site in further},
        validation=together(validation, "train", device) if partition.validation_share else None,
        task=Reconstruction(acceleration=first.how.acceleration, centre=first.how.centre),
        image_shape=(1, configuration.data.image_size, configuration.data.image_size),
        normalise=Normalisation((0.0,), (1.0,)),
    )


def _public(
    configuration: Configuration, data: DataSets, site: SliceSite, device: str
) -> PublicData:
    """Undersampled slices of another data set, or none."""
    if data.public is None:
        side = configuration.data.image_size
        return PublicData(torch.empty(0, 1, side, side, device=device), "")
    check_channels(site.data, data.public, "public")
    if data.public.used in {source.used for source in (data.target, *data.others)}:
        raise DataError(f"{data.public.used} is a site's own, and cannot be the public data too")
    public = replace(site, data=data.public)
    split, shown = public.shown(configuration.partition)
    images = public.slices(split, shown, device, seen=True)
    return PublicData(images, public.identity(split, shown))
