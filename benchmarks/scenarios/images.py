"""Images with a class or other annotations: who holds which, and what is learnt of them."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from fedtables.benchmarks.scenarios.configuration import Configuration, PartitionSettings
from fedtables.benchmarks.scenarios.scenario import DataSets
from fedtables.benchmarks.scenarios.sites import (
    Site,
    check_channels,
    limit,
    official_groups,
    official_labels,
)
from fedtables.datasets import partitions
from fedtables.datasets.catalogue import ResolvedData
from fedtables.datasets.dealing import require_groups
from fedtables.datasets.source import CLASS, annotations_of
from fedtables.federation.client import Shard
from fedtables.federation.data import LabelledSet, PublicData
from fedtables.federation.parts import ClientPart, Parts
from fedtables.federation.seeds import Seeds
from fedtables.federation.tasks.images import Classification
from fedtables.federation.tasks.targets import task_of

TASKS = ("classification", "segmentation")
"""Values of `data.task` that are this scenario's."""
ANNOTATIONS = {"classification": CLASS, "segmentation": "segment_semantic"}
"""What each task predicts of an image."""


@dataclass(frozen=True)
class Division:
    """Who holds what: indices into the training split, and for the public set into the split it
    comes from.

    The public set is of the same data set as the clients', unless `public.name` names another. With
    `private.name` the server's target data and the clients' are two data sets.
    """

    public_split: str
    public: np.ndarray
    validation: np.ndarray
    """Target samples that the server holds, with labels; for most methods none."""
    probe: np.ndarray
    """Training samples of the target task that the server holds with labels and may train on; for
    most methods none."""
    clients: list[np.ndarray]
    """Into the training split, or that of the private data set."""
    test: np.ndarray
    groups: list[range] = field(default_factory=list)
    """Each client's classes, where clients hold groups of them and number their own from 0."""


def divide(
    partition: PartitionSettings,
    labels: Mapping[str, np.ndarray],
    seeds: Seeds,
    other: Mapping[str, np.ndarray] | None = None,
    private: Mapping[str, np.ndarray] | None = None,
    classes: int = 0,
    *,
    uses_public: bool = True,
    owners: np.ndarray | None = None,
) -> Division:
    """The public set, every client's samples and the test set, drawn from the streams of the
    partition axis.

    `other` are the labels of the data set that the public set comes from, where that is another
    one; so are `private` of the clients' samples, which have `classes` classes. What is held out of
    the training split as public is no client's for any method, so that all have the same clients.
    `owners` says whose each sample of the target split is, such as a writer's: under by-group all
    samples of one are at one client, or public, or for validation.
    Raises PartitionError for a partition that cannot exist.
    """

    def rng(*names: object) -> np.random.Generator:
        return seeds.numpy("partition", *names)

    def held_out_of(among: np.ndarray, share: float, name: str) -> tuple[np.ndarray, np.ndarray]:
        drawn = rng(name)
        if partition.kind == "by-group":
            whose = require_groups(owners)[among]
            held, rest = partitions.split_groups(whose, share, drawn)
        else:
            held, rest = partitions.split_public(len(among), share, drawn)
        return among[held], among[rest]

    train = labels[partition.target_split]
    test = limit(np.arange(len(labels["test"])), partition.test_limit, rng("test limit"))
    unlabelled = limit(np.arange(len(train)), partition.target_limit, rng("target limit"))
    probe, unlabelled = _probe(partition, train, unlabelled, rng("probe"))
    if private is not None:
        if partition.validation_share and not len(unlabelled):
            raise partitions.PartitionError(
                "partition.validation_share is taken from the target's unlabelled samples, and at"
                f" partition.probe_share={partition.probe_share:g} there are none; choose a"
                " smaller one"
            )
        held, rest = partitions.split_public(
            len(unlabelled), partition.validation_share, rng("validation")
        )
        validation, unlabelled = unlabelled[held], unlabelled[rest]
        public = limit(unlabelled, partition.public_limit, rng("public limit"))
        pool = limit(np.arange(len(private["train"])), partition.pool_limit, rng("pool limit"))
        count = partition.clients
        groups: list[range] = []
        if partition.kind == "everyone":  # teachers of several tasks learn from the same images
            shares = [pool] * count
        elif partition.kind != "class-groups":
            raise partitions.PartitionError(
                f"private data of another set are not divided by {partition.kind!r}; use"
                " class-groups or everyone"
            )
        else:
            parts, groups = partitions.class_groups(private["train"][pool], count, classes)
            shares = [pool[part] for part in parts]
        return Division(partition.target_split, public, validation, probe, shares, test, groups)
    held_out, pool = np.arange(0), unlabelled
    if partition.public_split in ("", "train"):
        held_out, pool = held_out_of(unlabelled, partition.public_share, "public")
    public_split = partition.public_split or "train"
    available = labels if other is None else other
    if other is None and not uses_public:
        public_split, public = "train", np.arange(0)
    elif public_split not in available:
        raise partitions.PartitionError(
            f"the data set has no split {public_split!r} to be the public set; it has"
            f" {', '.join(available)}"
        )
    elif other is None and public_split == "train":
        public = held_out
    else:
        public = np.arange(len(available[public_split]))
    public = limit(public, partition.public_limit, rng("public limit"))
    pool = limit(pool, partition.pool_limit, rng("pool limit"))
    validation, pool = held_out_of(pool, partition.validation_share, "validation")
    whose = None if owners is None else owners[pool]
    shares = [pool[part] for part in partition.dealt(train[pool], partition.clients, rng, whose)]
    return Division(public_split, public, validation, probe, shares, test)


def _probe(
    partition: PartitionSettings, labels: np.ndarray, among: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The server's labelled samples among the training samples `among`, and the others."""
    share = partition.probe_share
    if not share:
        return np.arange(0), among
    drawn, rest = partitions.draw_share_by_class(
        labels[among], share, rng, consecutive=partition.probe_order == "consecutive"
    )
    return among[drawn], among[rest]


def parts(configuration: Configuration, data: DataSets, seeds: Seeds, device: str) -> Parts:
    """Images of one task at clients and server, those of the public set perhaps of another data
    set.

    With a private data set every client has a task of its own: its group of classes, or one of
    `partition.teachers` in turn. Raises DataError for absent or damaged data, PartitionError for an
    impossible partition.
    """
    _check(data)
    partition, size = configuration.partition, configuration.data.image_size
    target, private, public = (
        Site(found, size)
        for found in (data.target, data.private or data.target, data.public or data.target)
    )
    division = divide(
        partition,
        official_labels(target.data),
        seeds,
        None if data.public is None else official_labels(public.data),
        None if data.private is None else official_labels(private.data),
        private.source.classes,
        uses_public=configuration.public.name != "",
        owners=official_groups(target.data, partition.target_split),
    )
    predicted = ANNOTATIONS[configuration.data.task]

    def labelled(split: str, indices: np.ndarray) -> LabelledSet:
        return LabelledSet(
            target.images(split, indices, device),
            target.annotation(split, indices, predicted, device),
            target.identity(split, indices, *_unless_class(predicted)),
        )

    def held_by_server(indices: np.ndarray) -> LabelledSet | None:
        return labelled(partition.target_split, indices) if len(indices) else None

    split, shown = division.public_split, division.public
    return Parts(
        clients=_clients(partition, private, division, data.private is not None, device),
        public=PublicData(public.images(split, shown, device), public.identity(split, shown)),
        test=labelled("test", division.test),
        validation=held_by_server(division.validation),
        probe=held_by_server(division.probe),
        task=task_of(annotations_of(target.source)[predicted]),
        image_shape=(target.source.shape[0], size, size),
        normalise=target.normalise,
        oracle_labels=(
            public.annotation(split, shown, CLASS, device) if data.public is None else None
        ),
    )


def _clients(
    partition: PartitionSettings, site: Site, division: Division, own: bool, device: str
) -> list[ClientPart]:
    """What each client holds of a site's training samples; whether each has a task of its `own`."""
    labels = site.labels("train")
    held = np.unique(np.concatenate(division.clients))  # what any client holds, once
    pool = site.images("train", held, device)
    pool_targets = functools.cache(  # one copy for all clients
        lambda annotation: site.annotation("train", held, annotation, device)
    )
    teachers = partition.teachers.split("+")
    clients = []
    for index, indices in enumerate(division.clients):
        annotation = teachers[index % len(teachers)]
        task = task_of(annotations_of(site.source)[annotation])
        targets, first, about = pool_targets(annotation), 0, _unless_class(annotation)
        if division.groups:
            group = division.groups[index]
            task, first = Classification(len(group)), group.start
            targets = targets - first  # a client numbers its classes from 0
            about = (str(group), *about)
        counts: tuple[int, ...] = ()
        if annotation == CLASS:
            numbers = np.bincount(labels[indices] - first, minlength=task.outputs)
            counts = tuple(int(n) for n in numbers)
        positions = torch.from_numpy(np.searchsorted(held, indices)).to(device)
        stored = site.stored("train")
        grouped = stored is not None and stored.groups is not None
        clients.append(
            ClientPart(
                Shard(pool, targets, positions),
                counts,
                site.identity("train", indices, *about),
                site.data.used,
                indices,
                site.groups("train", indices) if grouped else None,
                task if own else None,
                site.normalise if own else None,
            )
        )
    return clients


def _unless_class(annotation: str) -> tuple[str, ...]:
    """What an identity says of targets: nothing of classes."""
    return (annotation,) if annotation != CLASS else ()


def _check(data: DataSets) -> None:
    """Raise DataError or PartitionError for data sets that cannot be of one federation."""
    private, public = data.private, data.public
    if private is not None:
        check_channels(data.target, private, "private")
    if public is not None:
        check_channels(data.target, public, "public")
    if private is not None and private.asked != data.target.asked:
        _check_apart(private, data.target, "clients would hold the server's own data", "private")
    if public is not None:
        _check_apart(public, data.target, "public set would be the clients' own data", "public")


def _check_apart(one: ResolvedData, other: ResolvedData, problem: str, prefix: str) -> None:
    if one.used == other.used:
        raise partitions.PartitionError(
            f"the {problem}: {one.asked} and {other.asked} are both {other.used} here; name another"
            f" with --set {prefix}.name=..."
        )
