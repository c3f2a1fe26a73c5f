"""Images and volumes with a target for every pixel: sites that hold some each, cut to patches for
training and seen through windows in tests, or resized.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from fedtables.benchmarks.scenarios.configuration import (
    Configuration,
    PartitionSettings,
    read_section,
)
from fedtables.benchmarks.scenarios.scenario import DataSets
from fedtables.benchmarks.scenarios.sites import (
    Site,
    check_channels,
    limit,
    named,
    names_of,
    together,
)
from fedtables.datasets import catalogue, partitions
from fedtables.datasets.catalogue import ResolvedData
from fedtables.datasets.source import INSTANCES, Annotation, DataError, annotated, annotations_of
from fedtables.federation.data import LabelledSet, PublicData
from fedtables.federation.parts import Parts
from fedtables.federation.seeds import Seeds
from fedtables.federation.tasks.base import Task
from fedtables.federation.tasks.pixels import BRATS, TUMOUR, Distance, Nuclei, Regions
from fedtables.federation.windows import Window, patches
from fedtables.metrics.masks import Reading
from fedtables.results.names import near
from fedtables.results.numbers import Share

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
class PixelSite(Site):
    """The samples of a data set, or those of one of its classes."""

    size: tuple[int, ...]
    name: str
    task: str
    """The annotation that is learnt."""
    how: PixelSettings
    label: int | None = None
    """The class of the samples; None for all."""

    @property
    def window(self) -> Window | None:
        """How networks see whole samples, where training cuts them."""
        return Window(self.size, self.how.overlap) if self.how.cut else None

    @property
    def whole(self) -> Site:
        """The same samples, uncut where training cuts them."""
        return Site(self.data, self.source.shape[1:] if self.how.cut else self.size)

    def samples(self, split: str) -> np.ndarray:
        """Indices of the site's samples in a split."""
        chosen = super().samples(split)
        if self.label is not None:
            chosen = chosen[self.labels(split) == self.label]
        if self.how.least and self.data.digest:
            chosen = chosen[self.sizes(split, chosen) >= self.how.least]
        return chosen

    def sizes(self, split: str, indices: np.ndarray) -> np.ndarray:
        """Labelled pixels of each sample, (n,); while planning 0."""
        held = self.stored(split)
        if held is None:
            return np.zeros(len(indices), np.int64)
        values = annotated(held, self.task)[indices]
        return np.count_nonzero(values.reshape(len(values), -1), axis=1)

    def tests(self, indices: np.ndarray, device: str) -> LabelledSet:
        """Test samples with their targets, with a window where training cuts them."""
        return LabelledSet(
            self.whole.images("test", indices, device),
            self.whole.annotation("test", indices, self.task, device),
            self.identity("test", indices),
            torch.from_numpy(self.groups("test", indices)).to(device),
            self.window,
        )

    def pairs(
        self, split: str, indices: np.ndarray, device: str
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Samples (n, c, *size) and targets (n, *size), cut where that is asked for."""
        images = self.whole.images(split, indices, device)
        targets = self.whole.annotation(split, indices, self.task, device)
        if not self.how.cut:
            return images, targets
        cut = patches(targets[:, None], self.size, self.how.patches)[:, 0]
        return patches(images, self.size, self.how.patches), cut

    def about(self) -> tuple[object, ...]:
        """Of the targets, and of how samples are cut."""
        return (self.task, self.how.cut, self.how.patches, self.how.overlap)


def sites_of(configuration: Configuration, sources: Sequence[ResolvedData]) -> dict[str, PixelSite]:
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
        sites = [PixelSite(by_name[n], size, called.get(n, n), annotation, how) for n in names]
        return {site.name: site for site in sites}
    [data] = (by_name[name] for name in names)
    known = catalogue.source(data.used).class_names
    for label in how.labels.split("+"):
        if label not in known:
            raise DataError(f"pixels.labels: unknown class {label!r}; {near(label, known)}")
    return {
        label: PixelSite(data, size, label, annotation, how, known.index(label))
        for label in how.labels.split("+")
    }


def tested(configuration: Configuration, sources: Sequence[ResolvedData]) -> dict[str, PixelSite]:
    """The sites on whose test samples a cell is measured; none if these are not told apart, being
    classes of a data set of which none is named.
    Raises DataError for a site that is unknown or has no test samples.
    """
    sites = sites_of(configuration, sources)
    how = read_section(configuration.others, "pixels", PixelSettings)
    if how.labels and not how.test:
        return {}
    asked = named(sites, "" if how.test == AVERAGE else how.test, "pixels.test")
    for name, site in asked.items():
        if not len(site.samples("test")):
            some = ", ".join(n for n, site in sites.items() if len(site.samples("test")))
            raise DataError(
                f"pixels.test: {name} has no test samples, or none with as many labelled pixels as"
                f" pixels.least ({how.least}) demands; sets with some: {', '.join(some) or 'none'}"
            )
    return asked


def test_sets(
    configuration: Configuration, sources: Sequence[ResolvedData], device: str
) -> dict[str, LabelledSet]:
    """The test samples on which a cell is measured, by site: of all classes of a data set
    together, where these are the sites and none is named.
    Raises DataError for a site that is unknown or has no test samples.
    """
    sites, most = tested(configuration, sources), configuration.partition.test_limit
    if not sites:
        every = sites_of(configuration, sources)
        first, *_ = every.values()
        return {first.data.asked: _of_all_classes(every, most, device)}
    return {name: site.tests(site.test_samples(most), device) for name, site in sites.items()}


def _of_all_classes(sites: Mapping[str, PixelSite], most: int, device: str) -> LabelledSet:
    first, *_ = sites.values()
    every = np.sort(np.concatenate([site.test_samples(most) for site in sites.values()]))
    return first.tests(every, device)


def divide(
    partition: PartitionSettings, sites: Sequence[PixelSite], seeds: Seeds
) -> list[tuple[PixelSite, np.ndarray]]:
    """Who holds which training samples: a client for every site, or several of one.

    `by-size` gives each client as many groups (patients) as the others, from those with the least
    of what is to be found to those with the most; `by-class` every client classes of its own, such
    as institutions, or a part of one.
    Raises PartitionError for a division that cannot exist.
    """

    def pool(site: PixelSite) -> np.ndarray:
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
        labels = site.labels("train")[held]
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
    training = named(sites, str(configuration.data.train), "data.train")
    held = divide(partition, [*training.values()], seeds)
    clients, validation = [], []
    for number, (site, indices) in enumerate(held):
        drawn = seeds.numpy("partition", "validation", number)
        groups = site.groups("train", indices)
        kept, rest = partitions.split_groups(groups, partition.validation_share, drawn)
        validation.append((site, indices[kept]))
        clients.append(site.client(indices[rest], device))
    site = held[0][0]
    (_, first), *others = sites.items()
    most = partition.test_limit
    if first.how.labels:
        test, further = _of_all_classes(sites, most, device), {}
    else:
        test = first.tests(first.test_samples(most), device)
        with_some = {name: s for name, s in others if len(s.samples("test"))}
        further = {n: s.tests(s.test_samples(most), device) for n, s in with_some.items()}
    return Parts(
        clients=clients,
        public=_public(configuration, data, site, device),
        test=test,
        further_tests=further,
        validation=together(validation, "train", device, False)
        if partition.validation_share
        else None,
        task=site.how.task(annotations_of(site.source)[site.task]),
        image_shape=(site.source.shape[0], *site.size),
        normalise=site.normalise,
    )


def _public(
    configuration: Configuration, data: DataSets, site: PixelSite, device: str
) -> PublicData:
    """Public samples of another data set, or none."""
    if data.public is None:
        shape = (site.source.shape[0], *site.size)
        return PublicData(torch.empty(0, *shape, dtype=torch.uint8, device=device), "")
    check_channels(site.data, data.public, "public")
    public = replace(site, data=data.public, label=None, how=replace(site.how, least=0))
    split, shown = public.shown(configuration.partition)
    return PublicData(
        public.whole.images(split, shown, device),
        public.identity(split, shown),
        site.window,
        site.how.patches,
    )
