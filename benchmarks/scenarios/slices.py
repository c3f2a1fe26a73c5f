"""Slices of magnetic resonance images that are reconstructed from undersampled k-space: a data set
is a site, and its subjects are a client's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from benchmarks.scenarios.configuration import Configuration, read_section
from benchmarks.scenarios.division import limit
from benchmarks.scenarios.samples import check_channels, names_of
from benchmarks.scenarios.scenario import ClientPart, DataSets, Parts
from benchmarks.scenarios.undersampled import Site, SliceSettings
from datasets import catalogue, partitions
from datasets.catalogue import ResolvedData
from datasets.source import DataError
from federation.client import Shard
from federation.data import LabelledSet, PublicData
from federation.seeds import Seeds
from federation.tasks.reconstruction import Reconstruction
from federation.training.inputs import Normalisation
from results.files import digest
from results.names import near

TASKS = ("reconstruction",)
"""Values of `data.task` that are this scenario's."""


def sites_of(
    configuration: Configuration, sources: Sequence[ResolvedData], names: str, setting: str
) -> dict[str, Site]:
    """The sites of these names, separated by commas, all if it is empty. Raises DataError for an
    unknown one, which `setting` names.
    """
    how = read_section(configuration.others, "slices", SliceSettings)
    called = names_of(how.called)
    side = configuration.data.image_size
    known = {called.get(data.asked, data.asked): Site(data, how, side) for data in sources}
    if len(known) < len(sources):
        raise DataError(f"slices.called: {how.called!r} gives two data sets one name")
    for name, site in known.items():
        source = catalogue.source(site.data.used)
        if source.shape[0] != 1 or len(source.shape) != 3:
            raise DataError(
                f"{name}: {source.title} has samples of {source.shape}, and reconstruction is of"
                " slices with one channel"
            )
    wanted = [*known] if names in ("", "all") else names.split(",")
    for name in wanted:
        if name not in known:
            raise DataError(f"{setting}: unknown site {name!r}; {near(name, known)}")
    return {name: known[name] for name in wanted}


def tested(configuration: Configuration, sources: Sequence[ResolvedData]) -> dict[str, Site]:
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
    return {",".join(sites): _subjects([*sites.values()], device)}


def _together(held: Sequence[tuple[Site, np.ndarray]], split: str, device: str) -> LabelledSet:
    """Slices of several sites; a group is a subject of one."""
    parts, first = [], 0
    for site, shown in held:
        subjects = np.unique(site.subjects(split)[shown], return_inverse=True)[1] + first
        parts.append((*site.pairs(split, shown, device), torch.from_numpy(subjects).to(device)))
        first = int(subjects.max(initial=first - 1)) + 1
    images, truth, groups = (torch.cat(maps) for maps in zip(*parts, strict=True))
    about = digest([site.identity(split, shown) for site, shown in held])
    return LabelledSet(images, truth, about, groups)


def _subjects(sites: Sequence[Site], device: str) -> LabelledSet:
    every = [(site, np.arange(len(site.subjects("test")))) for site in sites]
    return _together(every, "test", device)


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
        rest = np.arange(len(site.subjects("train")))
        rest = limit(rest, partition.pool_limit, seeds.numpy("partition", name, "pool limit"))
        drawn = seeds.numpy("partition", name, "validation")
        subjects = site.subjects("train")[rest]
        kept, held = partitions.split_groups(subjects, partition.validation_share, drawn)
        shard = Shard(*site.pairs("train", rest[held], device))
        about, whose = site.identity("train", rest[held]), subjects[held]
        clients.append(ClientPart(shard, (), about, site.data.used, rest[held], whose))
        validation.append((site, rest[kept]))
    (_, first), *further = sites_of(configuration, sources, "", "").items()
    channels = catalogue.source(first.data.used).shape[0]
    return Parts(
        clients=clients,
        public=_public(configuration, data, first, device),
        test=_subjects([first], device),
        further_tests={name: _subjects([site], device) for name, site in further},
        validation=_together(validation, "train", device) if partition.validation_share else None,
        task=Reconstruction(acceleration=first.how.acceleration, centre=first.how.centre),
        image_shape=(channels, first.side, first.side),
        normalise=Normalisation((0.0,), (1.0,)),
    )


def _public(configuration: Configuration, data: DataSets, site: Site, device: str) -> PublicData:
    """Undersampled slices of another data set, or none."""
    if data.public is None:
        return PublicData(torch.empty(0, 1, site.side, site.side, device=device), "")
    check_channels(site.data, data.public, "public")
    sources = (data.target, *data.others)
    if data.public.used in {source.used for source in sources}:
        raise DataError(f"{data.public.used} is a site's own, and cannot be the public data too")
    public = Site(data.public, site.how, site.side)
    shown = np.arange(len(public.subjects("train")))[: configuration.partition.public_limit or None]
    return PublicData(public.zero_filled("train", shown, device), public.identity("train", shown))
