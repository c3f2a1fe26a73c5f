"""Federations of chest films: sites with label sets of their own, and public films of another set
(FedAD, section 4.1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from benchmarks.scenarios.configuration import (
    Config,
    client_parts,
    common_parts,
    limit,
    roles,
)
from datasets import catalogue, partitions
from datasets.annotations import annotated, annotations_of
from datasets.catalogue import ResolvedData
from datasets.source import DataError
from federation.channel import Channel
from federation.client import Client, Shard
from federation.execution import DEFAULT, Execution
from federation.federation import Federation, LabelledSet, PublicData
from federation.method import Method
from federation.resizing import resize
from federation.seeds import Seeds
from federation.stages import StageCache
from federation.tasks import MultiLabel
from federation.training import Normalisation
from metrics.classification import UNKNOWN
from results.files import digest
from results.names import near

FINDINGS_TASK = "findings"
"""The target task, as `data.task` names it."""
REFERENCE_ONES = ("edema", "atelectasis")
"""Findings of which an uncertain label counts as present in the code that FedAD follows
(jfhealthcare, PCAM)."""
POLICIES = ("zeros", "ones", "ignore", "reference")


@dataclass(frozen=True)
class Site:
    """One site's films as they are on disk: which findings each has, and whose film it is."""

    data: ResolvedData
    findings: tuple[str, ...]
    """Those that the table asks of this site."""
    uncertain: str
    """What becomes of uncertain labels, one of `POLICIES`."""
    size: int
    """Pixels of a side, as networks see them."""

    def count(self, split: str) -> int:
        """Films in a split; while planning, as many as the official set has."""
        return (
            len(catalogue.load(self.data.used)[split])
            if self.data.digest
            else catalogue.source(self.data.used).sizes[split]
        )

    def images(self, split: str, indices: np.ndarray, device: str) -> torch.Tensor:
        """uint8 (n, c, size, size)."""
        if device == "meta":
            channels = catalogue.source(self.data.used).shape[0]
            return torch.empty(
                (len(indices), channels, self.size, self.size), dtype=torch.uint8, device="meta"
            )
        return resize(
            torch.from_numpy(catalogue.load(self.data.used)[split].images[indices]), self.size
        ).to(device)

    def targets(self, split: str, indices: np.ndarray) -> np.ndarray:
        """uint8 (n, findings): 1 present, 0 absent, 255 not known; while planning, one finding of
        each film in turn.

        A finding that the data set has no labels of is not known of any film.
        """
        if not self.data.digest:
            return np.eye(len(self.findings), dtype=np.uint8)[indices % len(self.findings)]
        names = annotations_of(catalogue.source(self.data.used))["findings"].names
        labels = annotated(catalogue.load(self.data.used)[split], "findings")[indices]
        found = np.full((len(indices), len(self.findings)), UNKNOWN, np.uint8)
        for column, finding in enumerate(self.findings):
            if finding in names:
                own = labels[:, names.index(finding)]
                found[:, column] = np.where(
                    own == UNKNOWN, _uncertain(self.uncertain, finding), own
                )
        return found

    def patients(self, split: str) -> np.ndarray:
        """A number per film (n,); while planning every film is another patient's."""
        if not self.data.digest:
            return np.arange(self.count(split))
        found = catalogue.load(self.data.used)[split]
        return np.arange(len(found)) if found.groups is None else found.groups

    def identity(self, split: str, indices: np.ndarray) -> str:
        """What identifies these films, with their labels, in stage keys."""
        content = digest(np.ascontiguousarray(indices).astype("<i8").tobytes())
        return digest(
            [
                self.data.used,
                self.data.digest,
                split,
                self.size,
                content,
                self.findings,
                self.uncertain,
            ]
        )


def _uncertain(policy: str, finding: str) -> int:
    if policy not in POLICIES:
        raise DataError(f"findings.uncertain is one of {', '.join(POLICIES)}, not {policy!r}")
    if policy == "reference":
        policy = "ones" if finding in REFERENCE_ONES else "zeros"
    return {"zeros": 0, "ones": 1, "ignore": UNKNOWN}[policy]


def site_of(config: Config, data: ResolvedData) -> Site:
    """The films of one data set, as the configuration reads them.

    Raises DataError for a set without findings, without a setting of them, or with one that it does
    not have.
    """
    known = annotations_of(catalogue.source(data.asked)).get("findings")
    if known is None or f"findings.{data.asked}" not in config:
        raise DataError(
            f"{data.asked} has no findings that a table asks for; use chest films such as nih-cxr14"
            " or chexpert"
        )
    findings = tuple(str(config[f"findings.{data.asked}"]).split("+"))
    for finding in findings:
        if finding not in known.names:
            raise DataError(
                f"findings.{data.asked}: unknown finding {finding!r}; {near(finding, known.names)}"
            )
    return Site(data, findings, str(config["findings.uncertain"]), int(config["data.image_size"]))


def all_findings(sites: Sequence[Site]) -> tuple[str, ...]:
    """Every finding that any site labels, once, in the order of the sites."""
    return tuple(dict.fromkeys(finding for site in sites for finding in site.findings))


def spread(targets: np.ndarray, own: Sequence[str], findings: Sequence[str]) -> np.ndarray:
    """Targets (n, own) of one site as targets (n, findings) of all; 255 for what the site does not
    label.
    """
    placed = np.full((len(targets), len(findings)), UNKNOWN, np.uint8)
    for column, finding in enumerate(own):
        placed[:, list(findings).index(finding)] = targets[:, column]
    return placed


@dataclass(frozen=True)
class SiteDivision:
    """Who holds which of one site's training films, and which are held out; no patient is in both,
    nor in the test films.

    Films are dealt, as in the paper, not patients: one patient's may be at several clients.
    """

    clients: list[np.ndarray]
    validation: np.ndarray


def divide_site(config: Config, site: Site, clients: int, seeds: Seeds) -> SiteDivision:
    """A site's films among its clients: a share of the patients is held out, the others' films are
    dealt by one finding each.

    FedAD, section 4.1.2: a film with several findings counts, for the Dirichlet split, as one of
    them at random; one with none (the paper is silent) as a class of its own. Raises PartitionError
    for a division that cannot exist.
    """

    def rng(*names: object) -> np.random.Generator:
        return seeds.numpy("partition", site.data.asked, *names)

    # Not of the site's own stream: sites that share patients, as stand-ins do, hold out the same.
    share, drawn = (
        float(config["partition.validation_share"]),
        seeds.numpy("partition", "validation"),
    )
    held, rest = partitions.split_groups(site.patients("train"), share, drawn)
    pool = limit(rest, config["partition.pool_limit"], rng("pool limit"))
    labels = partitions.one_positive(site.targets("train", pool) == 1, rng("positives"))
    parts = client_parts({**config, "partition.clients": clients}, labels, rng)
    return SiteDivision([pool[part] for part in parts], held)


def test_indices(config: Config, site: Site, seeds: Seeds) -> np.ndarray:
    """The test films of a site that count."""
    drawn = seeds.numpy("partition", site.data.asked, "test limit")
    return limit(np.arange(site.count("test")), config["partition.test_limit"], drawn)


def first_of_order(count: int, most: int, rng: np.random.Generator) -> np.ndarray:
    """The first `most` of `range(count)` in a random order, sorted; all if `most` is 0. A larger
    set holds every smaller one.
    """
    return np.sort(rng.permutation(count)[: most or count])


def test_set(
    config: Config, data: ResolvedData, seeds: Seeds, device: str
) -> tuple[LabelledSet, tuple[str, ...]]:
    """The test films of a data set that may be another than the clients', and the findings of its
    targets' columns.
    """
    site = site_of(config, data)
    chosen = test_indices(config, site, seeds)
    return (
        LabelledSet(
            site.images("test", chosen, device),
            torch.from_numpy(site.targets("test", chosen)).to(device),
            site.identity("test", chosen),
        ),
        site.findings,
    )


def build_film_federation(
    config: Config,
    data: Sequence[ResolvedData],
    seeds: Seeds,
    stages: StageCache,
    method: type[Method],
    *,
    device: str,
    channel: Channel | None,
    progress: Callable[[str, float], None],
    public: ResolvedData | None,
    execution: Execution = DEFAULT,
) -> Federation:
    """A federation whose task is every finding that one of its sites labels.

    The sites are those of `data` that `data.name` names; each has as many clients. Where sites
    label different findings, a client's own task is its site's. The test set is that of all sites.
    Raises DataError for absent or damaged data and impossible divisions.
    """
    by_name = {found.asked: found for found in data}
    sites = [site_of(config, by_name[name]) for name in str(config["data.name"]).split("+")]
    clients = int(config["partition.clients"])
    if clients % len(sites):
        raise partitions.PartitionError(
            f"{clients} clients cannot be divided evenly among {len(sites)} sites"
        )
    if public is None:
        raise DataError("the server needs public films of another set; name it with public.name")
    findings = all_findings(sites)
    task = MultiLabel(findings)
    divisions = [divide_site(config, site, clients // len(sites), seeds) for site in sites]

    def pooled(split: str, chosen: Sequence[np.ndarray]) -> LabelledSet:
        images = [
            site.images(split, indices, device) for site, indices in zip(sites, chosen, strict=True)
        ]
        targets = [
            spread(site.targets(split, indices), site.findings, findings)
            for site, indices in zip(sites, chosen, strict=True)
        ]
        identities = [
            site.identity(split, indices) for site, indices in zip(sites, chosen, strict=True)
        ]
        return LabelledSet(
            torch.cat(images),
            torch.from_numpy(np.concatenate(targets)).to(device),
            digest(identities),
        )

    held = pooled("train", [division.validation for division in divisions])
    network = str(config["network.client"])
    found: list[Client] = []
    for site, division in zip(sites, divisions, strict=True):
        dealt = np.concatenate(division.clients)
        pool = site.images("train", dealt, device)
        targets = site.targets("train", dealt)
        own = MultiLabel(site.findings) if site.findings != findings else None
        positives = spread(targets, site.findings, findings) == 1
        start = 0
        for indices in division.clients:
            positions = np.arange(start, start + len(indices))
            start += len(indices)
            index = len(found)
            role = roles(network, clients)[index]
            shard = Shard(
                pool, torch.from_numpy(targets).to(device), torch.from_numpy(positions).to(device)
            )
            counts = tuple(int(n) for n in positives[positions].sum(axis=0))
            name = str(config.get(f"network.{role}", role))
            found.append(
                Client(index, role, name, shard, counts, site.identity("train", indices), own)
            )

    origin = catalogue.source(public.used)
    first = catalogue.source(sites[0].data.used)
    everything = Site(public, (), "zeros", sites[0].size)
    limited = int(config["partition.public_limit"])
    shown = first_of_order(
        everything.count("train"), limited, seeds.numpy("partition", "public limit")
    )
    if origin.shape[0] != first.shape[0]:
        raise DataError(
            f"public images of {public.used} have another number of channels than the films of"
            f" {sites[0].data.used}"
        )
    server = str(config["network.server"])
    return Federation(
        clients=found,
        public=PublicData(
            everything.images("train", shown, device), everything.identity("train", shown)
        ),
        test=pooled("test", [test_indices(config, site, seeds) for site in sites]),
        validation=held if len(held.images) else None,
        task=task,
        network=str(config.get(f"network.{server}", server)),
        image_shape=(first.shape[0], sites[0].size, sites[0].size),
        normalise=Normalisation(first.mean, first.std),
        seeds=seeds,
        stages=stages,
        channel=channel,
        device=device,
        execution=execution,
        progress=progress,
        **common_parts(config, method),
    )
