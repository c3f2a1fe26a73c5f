"""Chest films: sites with label sets of their own, and public films of another set (FedAD, section
4.1).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import torch

from fedtables.benchmarks.scenarios.configuration import (
    Configuration,
    PartitionSettings,
    read_section,
)
from fedtables.benchmarks.scenarios.scenario import DataSets
from fedtables.benchmarks.scenarios.sites import Site, check_channels, limit
from fedtables.benchmarks.tables.spec import Scalar
from fedtables.datasets import catalogue, partitions
from fedtables.datasets.catalogue import ResolvedData
from fedtables.datasets.source import DataError, annotated, annotations_of
from fedtables.federation.data import LabelledSet, PublicData
from fedtables.federation.parts import ClientPart, Parts
from fedtables.federation.seeds import Seeds
from fedtables.federation.tasks.images import MultiLabel
from fedtables.metrics.classification import UNKNOWN
from fedtables.results.files import digest
from fedtables.results.names import near

TASKS = ("findings",)
"""Values of `data.task` that are this scenario's."""
REFERENCE_ONES = ("edema", "atelectasis")
"""Findings of which an uncertain label counts as present in the code that FedAD follows
(jfhealthcare, PCAM)."""
Policy = Literal["zeros", "ones", "ignore", "reference"]
"""What becomes of uncertain labels: absent, present, not known, or present for `REFERENCE_ONES` and
absent for all else."""


@dataclass(frozen=True)
class FindingsSettings:
    """`findings.*`: which findings a table asks of each data set."""

    uncertain: Policy
    sites: Mapping[str, str] = field(default_factory=dict)
    """By data set: `findings.chexpert` is `edema+cardiomegaly`."""

    @classmethod
    def names(cls, name: str, value: Scalar) -> bool:
        """Whether an entry is one of `sites`: if it is named by a data set."""
        return name in catalogue.sources()


@dataclass(frozen=True)
class FilmSite(Site):
    """The films of a data set, and which findings each has."""

    findings: tuple[str, ...]
    """Those that the table asks of this site."""
    uncertain: Policy

    def targets(self, split: str, indices: np.ndarray) -> np.ndarray:
        """uint8 (n, findings): 1 present, 0 absent, 255 not known; while planning, one finding of
        each film in turn.

        A finding that the data set has no labels of is not known of any film.
        """
        held = self.stored(split)
        if held is None:
            return np.eye(len(self.findings), dtype=np.uint8)[indices % len(self.findings)]
        names = annotations_of(self.source)["findings"].names
        labels = annotated(held, "findings")[indices]
        targets = np.full((len(indices), len(self.findings)), UNKNOWN, np.uint8)
        for column, finding in enumerate(self.findings):
            if finding in names:
                labelled = labels[:, names.index(finding)]
                targets[:, column] = np.where(
                    labelled == UNKNOWN, _uncertain(self.uncertain, finding), labelled
                )
        return targets

    def pairs(
        self, split: str, indices: np.ndarray, device: str
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Films and what is known of their findings."""
        targets = torch.from_numpy(self.targets(split, indices)).to(device)
        return self.images(split, indices, device), targets

    def places(self, split: str, indices: np.ndarray) -> np.ndarray | None:
        """At which pixels each finding is, bool (n, findings, height, width) on the grid of the
        films as they are; None where that is not known, and while planning.
        """
        held, known = self.stored(split), annotations_of(self.source)
        if held is None or "places" not in known:
            return None
        names = known["findings"].names
        places = annotated(held, "places")[indices]
        numbers = [1 + names.index(finding) for finding in self.findings]
        return np.stack([places == number for number in numbers], axis=1)

    def about(self) -> tuple[object, ...]:
        """Of the labels."""
        return (self.findings, self.uncertain)


def _uncertain(policy: Policy, finding: str) -> int:
    if policy == "reference":
        policy = "ones" if finding in REFERENCE_ONES else "zeros"
    return {"zeros": 0, "ones": 1, "ignore": UNKNOWN}[policy]


def site_of(configuration: Configuration, data: ResolvedData) -> FilmSite:
    """The films of one data set, as the configuration reads them.

    Raises DataError for a set without findings, without a setting of them, or with one that it does
    not have; SpecError for settings that are unknown.
    """
    settings = read_section(configuration.others, "findings", FindingsSettings)
    known = annotations_of(catalogue.source(data.asked)).get("findings")
    if known is None or data.asked not in settings.sites:
        raise DataError(
            f"{data.asked} has no findings, which this table needs; use chest films such as"
            " nih-cxr14 or chexpert"
        )
    findings = tuple(settings.sites[data.asked].split("+"))
    for finding in findings:
        if finding not in known.names:
            raise DataError(
                f"findings.{data.asked}: unknown finding {finding!r}; {near(finding, known.names)}"
            )
    return FilmSite(data, configuration.data.image_size, findings, settings.uncertain)


def all_findings(sites: Sequence[FilmSite]) -> tuple[str, ...]:
    """Every finding that any site labels, once, in the order of the sites."""
    return tuple(dict.fromkeys(finding for site in sites for finding in site.findings))


def spread(
    targets: np.ndarray, labelled: Sequence[str], findings: Sequence[str], absent: int = UNKNOWN
) -> np.ndarray:
    """Targets (n, labelled, ...) of one site as targets (n, findings, ...) of all; `absent` for
    what the site does not label.
    """
    placed = np.full((len(targets), len(findings), *targets.shape[2:]), absent, targets.dtype)
    for column, finding in enumerate(labelled):
        placed[:, list(findings).index(finding)] = targets[:, column]
    return placed


def divide_site(
    partition: PartitionSettings, site: FilmSite, clients: int, seeds: Seeds
) -> tuple[list[np.ndarray], np.ndarray]:
    """A site's training films by client, and those that are held out: a share of the patients, of
    whom none has films at a client or in the test set. The others' films are dealt by one finding
    each, as in the paper, not by patients: one's may be at several clients of a site.

    FedAD, section 4.1.2: a film with several findings counts, for the Dirichlet split, as one of
    them at random; one with none (the paper is silent) as a class of its own. Raises PartitionError
    for a division that cannot exist.
    """

    def rng(*names: object) -> np.random.Generator:
        return seeds.numpy("partition", site.data.asked, *names)

    # Not of the site's own stream: sites that share patients, as stand-ins do, hold out the same.
    drawn = seeds.numpy("partition", "validation")
    patients = site.groups("train", site.samples("train"))
    held, rest = partitions.split_groups(patients, partition.validation_share, drawn)
    pool = limit(rest, partition.pool_limit, rng("pool limit"))
    labels = partitions.one_positive(site.targets("train", pool) == 1, rng("positives"))
    return [pool[part] for part in partition.dealt(labels, clients, rng, patients[pool])], held


def test_indices(partition: PartitionSettings, site: FilmSite, seeds: Seeds) -> np.ndarray:
    """The test films of a site that count."""
    drawn = seeds.numpy("partition", site.data.asked, "test limit")
    return limit(site.samples("test"), partition.test_limit, drawn)


def first_of_order(count: int, most: int, rng: np.random.Generator) -> np.ndarray:
    """The first `most` of `range(count)` in a random order, sorted; all if `most` is 0. A larger
    set holds every smaller one.
    """
    return np.sort(rng.permutation(count)[: most or count])


def test_set(
    configuration: Configuration, data: ResolvedData, seeds: Seeds, device: str
) -> tuple[LabelledSet, tuple[str, ...]]:
    """The test films of a data set that may be another than the clients', and the findings of its
    targets' columns.
    """
    site = site_of(configuration, data)
    chosen = test_indices(configuration.partition, site, seeds)
    pairs = site.pairs("test", chosen, device)
    return LabelledSet(*pairs, site.identity("test", chosen)), site.findings


def parts(configuration: Configuration, data: DataSets, seeds: Seeds, device: str) -> Parts:
    """Films of one or more sites; the task is every finding that one of them labels.

    The sites are those data sets that `data.name` names; each has as many clients. Where sites
    label different findings, a client's own task is its site's. The test set is that of all sites,
    the public films are of a set that no client has. Raises DataError for absent or damaged data
    and impossible divisions.
    """
    partition = configuration.partition
    by_name = {resolved.asked: resolved for resolved in (data.target, *data.others)}
    sites = [site_of(configuration, by_name[name]) for name in configuration.data.name.split("+")]
    if partition.clients % len(sites):
        raise partitions.PartitionError(
            f"{partition.clients} clients cannot be divided evenly among {len(sites)} sites"
        )
    if data.public is None:
        raise DataError("the server needs public films of another set; name it with public.name")
    check_channels(sites[0].data, data.public, "public")
    each = partition.clients // len(sites)
    divisions = [divide_site(partition, site, each, seeds) for site in sites]
    findings = all_findings(sites)

    def pooled(split: str, chosen: Sequence[np.ndarray]) -> LabelledSet:
        by_site = list(zip(sites, chosen, strict=True))
        targets = [
            spread(site.targets(split, indices), site.findings, findings)
            for site, indices in by_site
        ]
        places = [
            spread(known, site.findings, findings, absent=0)
            for site, indices in by_site
            if (known := site.places(split, indices)) is not None
        ]
        whole = len(places) == len(sites)
        return LabelledSet(
            torch.cat([site.images(split, indices, device) for site, indices in by_site]),
            torch.from_numpy(np.concatenate(targets)).to(device),
            digest([site.identity(split, indices) for site, indices in by_site]),
            places=torch.from_numpy(np.concatenate(places)).to(device) if whole else None,
        )

    public = FilmSite(data.public, sites[0].size, (), "zeros")
    drawn = seeds.numpy("partition", "public limit")
    shown = first_of_order(len(public.samples("train")), partition.public_limit, drawn)
    held = pooled("train", [kept for _, kept in divisions])
    return Parts(
        clients=[
            _client(site, indices, findings, device)
            for site, (dealt, _) in zip(sites, divisions, strict=True)
            for indices in dealt
        ],
        public=PublicData(public.images("train", shown, device), public.identity("train", shown)),
        test=pooled("test", [test_indices(partition, site, seeds) for site in sites]),
        validation=held if len(held.images) else None,
        task=MultiLabel(findings),
        image_shape=(sites[0].source.shape[0], *[configuration.data.image_size] * 2),
        normalise=sites[0].normalise,
    )


def _client(
    site: FilmSite, indices: np.ndarray, findings: Sequence[str], device: str
) -> ClientPart:
    """A client of a site, which counts the positives of the findings of all sites."""
    positives = spread(site.targets("train", indices), site.findings, findings) == 1
    return replace(
        site.client(indices, device),
        label_counts=tuple(int(n) for n in positives.sum(axis=0)),
        task=MultiLabel(site.findings) if site.findings != findings else None,
    )
