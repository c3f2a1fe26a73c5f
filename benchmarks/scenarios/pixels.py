"""Images and volumes with a target for every pixel: sites that hold some each, cut to patches for
training and seen through windows in tests, or resized.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from benchmarks.scenarios.configuration import Configuration, PartitionSettings, read_section
from benchmarks.scenarios.division import limit
from benchmarks.scenarios.samples import (
    check_channels,
    identity,
    images_of,
    names_of,
    official_labels,
    targets_at,
)
from benchmarks.scenarios.scenario import ClientPart, DataSets, Parts
from datasets import catalogue, partitions
from datasets.annotations import INSTANCES, Annotation, annotated, annotations_of
from datasets.catalogue import ResolvedData
from datasets.source import DataError
from federation.client import Shard
from federation.data import LabelledSet, PublicData
from federation.seeds import Seeds
from federation.tasks.base import Task
from federation.tasks.nuclei import Distance, Nuclei
from federation.tasks.regions import BRATS, TUMOUR, Regions
from federation.training.inputs import Normalisation
from federation.windows import Window, patches
from metrics.masks import Reading
from results.files import digest
from results.names import near
from results.numbers import Share

TASKS = ("nuclei", "tumour")
"""Values of `data.task` that are this scenario's, and the annotations that they predict."""
AVERAGE = "average"
"""Of the metrics on every site's test samples."""


@dataclass(frozen=True)
class PixelSettings:
    """`pixels.*`: who holds which samples, and how networks see them."""

    labels: str = ""
    """Classes of one data set whose samples are a site each: `breast+liver`; empty where each data
    set is a site."""
    called: str = ""
    """What a table's columns call a data set: `monuseg=tcga`."""
    test: str = ""
    """The site on whose test samples a cell is measured, or `average`; empty for all that train."""
    cut: bool = False
    """Whether samples are cut to patches of `data.image_size` and seen through windows in tests, or
    resized to it."""
    patches: int = 0
    """Patches along a side of a sample, evenly spread; 0 for as few as cover it."""
    overlap: Share = 0.25
    """Share of a window's side that its neighbour has too, in tests."""
    weights: str = "1+1+1"
    """Of background, inside and boundary of nuclei in the loss."""
    cross_entropy: float = 1.0
    """Weight of the cross-entropy in the loss of regions."""
    dice: float = 1.0
    """Weight of the soft Dice loss there."""
    reading: Reading = "paper"
    """How metrics are read where a paper and its code differ: `paper` or `released`."""
    distance: Distance = "mask"
    """HD95 of nuclei: of `objects`, or of the `mask` of all together."""
    smallest: int = 20
    """Nuclei of fewer pixels are dropped from a prediction."""
    radius: int = 2
    """Pixels by which those that are left grow."""
    least: int = 0
    """Labelled pixels of a sample, as stored; samples with fewer are left out."""

    def task(self, annotation: Annotation) -> Task:
        """The task of an annotation: objects, the one region of a mask, or those of BraTS."""
        if annotation.kind == INSTANCES:
            outside, inside, boundary = map(float, self.weights.split("+"))
            weights = (outside, inside, boundary)
            return Nuclei(weights, self.reading, self.distance, self.smallest, self.radius)
        regions = TUMOUR if annotation.size == 2 else BRATS
        return Regions(regions, self.cross_entropy, self.dice, reading=self.reading)


@dataclass(frozen=True)
class Site:
    """What one site holds: the samples of a data set, or those of one of its classes."""

    name: str
    data: ResolvedData
    annotation: str
    how: PixelSettings
    size: tuple[int, ...]
    """Sides in pixels, as networks see samples."""
    label: int | None = None
    """The class of the samples; None for all."""

    @property
    def window(self) -> Window | None:
        """How networks see whole samples, where training cuts them."""
        return Window(self.size, self.how.overlap) if self.how.cut else None

    def samples(self, split: str) -> np.ndarray:
        """Indices of the site's samples in a split."""
        labels = official_labels(self.data)[split]
        chosen = np.arange(len(labels))
        if self.label is not None:
            chosen = chosen[labels == self.label]
        if self.how.least and self.data.digest:
            chosen = chosen[self.sizes(split, chosen) >= self.how.least]
        return chosen

    def groups(self, split: str, indices: np.ndarray) -> np.ndarray:
        """Whose each sample is, (n,); while planning each of its own."""
        held = catalogue.load(self.data.used)[split].groups if self.data.digest else None
        return indices if held is None else held[indices]

    def sizes(self, split: str, indices: np.ndarray) -> np.ndarray:
        """Labelled pixels of each sample, (n,); while planning 0."""
        if not self.data.digest:
            return np.zeros(len(indices), np.int64)
        values = annotated(catalogue.load(self.data.used)[split], self.annotation)[indices]
        return np.count_nonzero(values.reshape(len(values), -1), axis=1)

    def _sides(self) -> tuple[int, ...]:
        return catalogue.source(self.data.used).shape[1:] if self.how.cut else self.size

    def whole(self, split: str, indices: np.ndarray, device: str) -> LabelledSet:
        """Samples with targets for tests, with a window where training cuts them."""
        groups = torch.from_numpy(self.groups(split, indices)).to(device)
        return LabelledSet(
            images_of(self.data, split, indices, self._sides(), device),
            targets_at(self.data, split, indices, self.annotation, self._sides(), device),
            self.identity(split, indices),
            groups,
            self.window,
        )

    def parts(
        self, split: str, indices: np.ndarray, device: str
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Samples (n, c, *size) and targets (n, *size) for training, cut where that is asked
        for.
        """
        images = images_of(self.data, split, indices, self._sides(), device)
        targets = targets_at(self.data, split, indices, self.annotation, self._sides(), device)
        if not self.how.cut:
            return images, targets
        return patches(images, self.size, self.how.patches), patches(
            targets[:, None], self.size, self.how.patches
        )[:, 0]

    def identity(self, split: str, indices: np.ndarray) -> str:
        """What identifies these samples, with their targets, in stage keys."""
        about = (self.annotation, self.how.cut, self.how.patches, self.how.overlap)
        return identity(self.data, split, indices, self.size, *about)


def sites_of(configuration: Configuration, sources: Sequence[ResolvedData]) -> dict[str, Site]:
    """Every site that a configuration names, whether it trains or not, by what tables call it.

    Raises DataError for a class that the data set does not have, SpecError for unknown settings.
    """
    how = read_section(configuration.others, "pixels", PixelSettings)
    called = names_of(how.called)
    by_name = {source.asked: source for source in sources}
    annotation, side = configuration.data.task, configuration.data.image_size
    names = configuration.data.name.split("+")
    dims = len(catalogue.source(by_name[names[0]].used).shape) - 1
    size = (configuration.data.depth or side, side, side)[-dims:]
    if not how.labels:
        sites = [Site(called.get(n, n), by_name[n], annotation, how, size) for n in names]
        return {site.name: site for site in sites}
    [data] = (by_name[name] for name in names)
    known = catalogue.source(data.used).class_names
    for label in how.labels.split("+"):
        if label not in known:
            raise DataError(f"pixels.labels: unknown class {label!r}; {near(label, known)}")
    return {
        label: Site(label, data, annotation, how, size, known.index(label))
        for label in how.labels.split("+")
    }


def training_sites(configuration: Configuration, sites: Mapping[str, Site]) -> list[Site]:
    """Those that `data.train` names, all where it names none. Raises DataError for another."""
    wanted = str(configuration.data.train)
    names = list(sites) if wanted in ("", "all") else wanted.split(",")
    for name in names:
        if name not in sites:
            raise DataError(f"data.train: unknown site {name!r}; {near(name, sites)}")
    return [sites[name] for name in names]


def tested(configuration: Configuration, sources: Sequence[ResolvedData]) -> dict[str, Site]:
    """The sites on whose test samples a cell is measured; none if these are not told apart, being
    classes of a data set of which none is named.
    Raises DataError for a site that is unknown or has no test samples.
    """
    sites = sites_of(configuration, sources)
    how = read_section(configuration.others, "pixels", PixelSettings)
    if how.labels and not how.test:
        return {}
    wanted = list(sites) if how.test in ("", AVERAGE) else [how.test]
    for name in wanted:
        if name not in sites:
            raise DataError(f"pixels.test: unknown site {name!r}; {near(name, sites)}")
        if not len(sites[name].samples("test")):
            some = ", ".join(n for n, site in sites.items() if len(site.samples("test")))
            raise DataError(
                f"pixels.test: {name} has no test samples, or none with as many labelled pixels as"
                f" pixels.least ({how.least}) asks for; with some: {', '.join(some) or 'none'}"
            )
    return {name: sites[name] for name in wanted}


def test_sets(
    configuration: Configuration, sources: Sequence[ResolvedData], device: str
) -> dict[str, LabelledSet]:
    """The test samples on which a cell is measured, by site: of all classes of a data set
    together, where these are the sites and none is named.
    Raises DataError for a site that is unknown or has no test samples.
    """
    sites = tested(configuration, sources)
    if not sites:
        every = sites_of(configuration, sources)
        first, *_ = every.values()
        return {first.data.asked: _of_all_classes(every, device)}
    return {name: site.whole("test", site.samples("test"), device) for name, site in sites.items()}


def _of_all_classes(sites: Mapping[str, Site], device: str) -> LabelledSet:
    first, *_ = sites.values()
    every = np.sort(np.concatenate([site.samples("test") for site in sites.values()]))
    return first.whole("test", every, device)


def divide(
    partition: PartitionSettings, sites: Sequence[Site], seeds: Seeds
) -> list[tuple[Site, np.ndarray]]:
    """Who holds which training samples: a client for every site, or several of one.

    `by-size` gives each client as many groups (patients) as the others, from those with the least
    of what is to be found to those with the most; `by-class` every client classes of its own, such
    as institutions, or a part of one.
    Raises PartitionError for a division that cannot exist.
    """

    def pool(site: Site) -> np.ndarray:
        drawn = seeds.numpy("partition", site.name, "pool limit")
        return limit(site.samples("train"), partition.pool_limit, drawn)

    if partition.kind == "by-site":
        if partition.clients != len(sites):
            raise partitions.PartitionError(
                f"{len(sites)} sites are as many clients, not {partition.clients}; set"
                " partition.clients"
            )
        return [(site, pool(site)) for site in sites]
    [site] = sites
    held = pool(site)
    if partition.kind == "by-size":
        groups, sizes = site.groups("train", held), site.sizes("train", held)
        shares = partitions.by_size(groups, sizes, partition.clients)
    elif partition.kind == "by-class":
        labels = official_labels(site.data)["train"][held]
        shares = partitions.by_site(site.groups("train", held), labels, partition.clients)
    else:
        raise partitions.PartitionError(
            f"samples with targets for every pixel are not divided by {partition.kind!r}; use"
            " by-site, by-size or by-class"
        )
    return [(site, held[share]) for share in shares]


def parts(configuration: Configuration, data: DataSets, seeds: Seeds, device: str) -> Parts:
    """Patches or samples of one or more sites; no group has samples on two sides of a division.

    Raises DataError for absent or damaged data, PartitionError for impossible divisions.
    """
    partition = configuration.partition
    sites = sites_of(configuration, (data.target, *data.others))
    held = divide(partition, training_sites(configuration, sites), seeds)
    clients, validation = [], []
    for number, (site, indices) in enumerate(held):
        drawn = seeds.numpy("partition", "validation", number)
        groups = site.groups("train", indices)
        kept, rest = partitions.split_groups(groups, partition.validation_share, drawn)
        validation.append((site, indices[kept]))
        images, targets = site.parts("train", indices[rest], device)
        about, each = site.identity("train", indices[rest]), len(images) // max(1, len(rest))
        records, whose = (np.tile(of, each) for of in (indices[rest], groups[rest]))
        shard = Shard(images, targets)
        clients.append(ClientPart(shard, (), about, site.data.used, records, whose))
    site = held[0][0]
    source = catalogue.source(site.data.used)
    (_, first), *others = sites.items()
    if first.how.labels:
        test, further = _of_all_classes(sites, device), {}
    else:
        test = first.whole("test", first.samples("test"), device)
        with_some = {name: s for name, s in others if len(s.samples("test"))}
        further = {n: s.whole("test", s.samples("test"), device) for n, s in with_some.items()}
    return Parts(
        clients=clients,
        public=_public(configuration, data, site, device),
        test=test,
        further_tests=further,
        validation=_pooled(validation, device) if partition.validation_share else None,
        task=site.how.task(annotations_of(source)[site.annotation]),
        image_shape=(source.shape[0], *site.size),
        normalise=Normalisation(source.mean, source.std),
    )


def _pooled(held: Sequence[tuple[Site, np.ndarray]], device: str) -> LabelledSet:
    """What the server holds of every client's, as training samples are."""
    pairs = [site.parts("train", indices, device) for site, indices in held]
    images, targets = (torch.cat(maps) for maps in zip(*pairs, strict=True))
    about = digest([site.identity("train", indices) for site, indices in held])
    return LabelledSet(images, targets, about, torch.arange(len(images), device=device))


def _public(configuration: Configuration, data: DataSets, site: Site, device: str) -> PublicData:
    """Public samples of another data set, or none."""
    if data.public is None:
        channels = catalogue.source(site.data.used).shape[0]
        return PublicData(
            torch.empty(0, channels, *site.size, dtype=torch.uint8, device=device), ""
        )
    check_channels(site.data, data.public, "public")
    partition = configuration.partition
    public = Site("public", data.public, site.annotation, site.how, site.size)
    split = partition.public_split or "train"
    shown = np.arange(len(official_labels(data.public)[split]))[: partition.public_limit or None]
    return PublicData(
        images_of(data.public, split, shown, public._sides(), device),
        public.identity(split, shown),
        site.window,
        site.how.patches,
    )
