"""From a resolved configuration to a federation: data, partition, clients, task."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from benchmarks.scenarios.configuration import (
    Config,
    augmentation_of,
    client_parts,
    common_parts,
    limit,
    roles,
)
from benchmarks.scenarios.sites import FINDINGS_TASK, build_film_federation
from datasets import catalogue, partitions
from datasets.annotations import CLASS, MAP, annotated, annotations_of
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
from federation.tasks import Classification, Task, resize_targets, targets_of, task_of
from federation.training import Normalisation
from models.catalogue import DENSE
from results.files import digest

TASKS = {"classification": CLASS, "segmentation": "segment_semantic"}
"""Target tasks, as tables name them, by the annotation that they predict."""


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
    """Training samples that the server holds, with labels; for most methods none."""
    probe: np.ndarray
    """Training samples of the target task that the server holds with labels and may train on; for
    most methods none."""
    clients: list[np.ndarray]
    """Into the training split, or that of the private data set."""
    test: np.ndarray
    groups: list[range] = field(default_factory=list)
    """Each client's classes, where clients hold groups of them and number their own from 0."""


def official_labels(data: ResolvedData) -> dict[str, np.ndarray]:
    """Labels of every split; for planning without the files, balanced labels of the official
    sizes.
    """
    source = catalogue.source(data.used)
    if data.digest:
        return {name: split.labels for name, split in catalogue.load(data.used).items()}
    return {name: np.arange(size) % source.classes for name, size in source.sizes.items()}


def divide(
    config: Config,
    labels: Mapping[str, np.ndarray],
    seeds: Seeds,
    other: Mapping[str, np.ndarray] | None = None,
    private: Mapping[str, np.ndarray] | None = None,
    classes: int = 0,
) -> Division:
    """The public set, every client's samples and the test set, drawn from the streams of the
    partition axis.

    `other` are the labels of the data set that the public set comes from, where that is another
    one; so are `private` of the clients' samples, which have `classes` classes. Raises
    PartitionError for a partition that cannot exist.
    """

    def rng(*names: object) -> np.random.Generator:
        return seeds.numpy("partition", *names)

    train = labels[str(config.get("partition.target_split", "train"))]
    test = limit(np.arange(len(labels["test"])), config["partition.test_limit"], rng("test limit"))
    unlabelled = limit(
        np.arange(len(train)), config.get("partition.target_limit", 0), rng("target limit")
    )
    probe, unlabelled = _probe(config, train, unlabelled, rng("probe"))
    if private is not None:
        public = limit(unlabelled, config["partition.public_limit"], rng("public limit"))
        pool = limit(
            np.arange(len(private["train"])), config["partition.pool_limit"], rng("pool limit")
        )
        count = int(config["partition.clients"])
        groups: list[range] = []
        if (
            config["partition.kind"] == "everyone"
        ):  # teachers of several tasks learn from the same images
            own = [pool] * count
        elif config["partition.kind"] != "class-groups":
            raise partitions.PartitionError(
                f"private data of another set are not divided by {config['partition.kind']!r}; use"
                " class-groups or everyone"
            )
        else:
            parts, groups = partitions.class_groups(private["train"][pool], count, classes)
            own = [pool[part] for part in parts]
        return Division(
            str(config["partition.target_split"]), public, np.arange(0), probe, own, test, groups
        )
    unused = other is None and config.get("public.name") == ""  # the method uses no public data
    public_split = "train" if unused else str(config["partition.public_split"]) or "train"
    available = labels if other is None else other
    if public_split not in available:
        raise partitions.PartitionError(
            f"the data set has no split {public_split!r} to be the public set; it has"
            f" {', '.join(available)}"
        )
    if unused:
        public, pool = np.arange(0), unlabelled
    elif other is None and public_split == "train":
        public, pool = (
            unlabelled[part]
            for part in partitions.split_public(
                len(unlabelled), float(config["partition.public_share"]), rng("public")
            )
        )
    else:
        public, pool = np.arange(len(available[public_split])), unlabelled
    public = limit(public, config["partition.public_limit"], rng("public limit"))
    pool = limit(pool, config["partition.pool_limit"], rng("pool limit"))
    held, rest = partitions.split_public(
        len(pool), float(config.get("partition.validation_share", 0)), rng("validation")
    )
    held_out, pool = pool[held], pool[rest]
    own = [pool[part] for part in client_parts(config, train[pool], rng)]
    return Division(public_split, public, held_out, probe, own, test)


def _probe(
    config: Config, labels: np.ndarray, among: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The server's labelled samples among the training samples `among`, and the others."""
    share = float(config.get("partition.probe_share", 0))
    if not share:
        return np.arange(0), among
    drawn, rest = partitions.draw_share_by_class(
        labels[among], share, rng, consecutive=config.get("partition.probe_order") == "consecutive"
    )
    return among[drawn], among[rest]


def build_federation(
    config: Config,
    data: ResolvedData,
    seeds: Seeds,
    stages: StageCache,
    method: type[Method],
    *,
    device: str = "cpu",
    channel: Channel | None = None,
    progress: Callable[[str, float], None] = lambda text, share: None,
    public: ResolvedData | None = None,
    private: ResolvedData | None = None,
    others: Sequence[ResolvedData] = (),
    execution: Execution = DEFAULT,
) -> Federation:
    """The federation of one cell. On the device `meta` nothing is loaded or computed, only sizes
    are known.

    `public` is the data set of the public images where it is another than the clients', `private`
    that of the clients where the server has target data of another, `others` those of further sites
    (`benchmarks.scenarios.sites`). Raises DataError for absent or damaged data and impossible
    partitions.
    """
    if config.get("data.task") == FINDINGS_TASK:
        return build_film_federation(
            config,
            [data, *others],
            seeds,
            stages,
            method,
            device=device,
            channel=channel,
            progress=progress,
            public=public,
            execution=execution,
        )
    source = catalogue.source(data.used)
    labels = official_labels(data)
    shared = public or data
    own = private or data
    if catalogue.source(own.used).shape[0] != source.shape[0]:
        raise DataError(
            f"private images of {own.used} have another number of channels than those of"
            f" {data.used}"
        )
    if catalogue.source(shared.used).shape[0] != source.shape[0]:
        raise DataError(
            f"public images of {shared.used} have another number of channels than the private ones"
            f" of {data.used}"
        )
    if private is not None and private.used == data.used and private.asked != data.asked:
        raise partitions.PartitionError(
            f"the clients would hold the server's own data: {private.asked} and {data.asked} are"
            f" both {data.used} here; name another with --set private.name=..."
        )
    if public is not None and public.used == data.used:
        raise partitions.PartitionError(
            f"the public set would be the clients' own data: {public.asked} and {data.asked} are"
            f" both {data.used} here; name another with --set public.name=..."
        )
    shared_labels = labels if public is None else official_labels(public)
    own_labels = labels if private is None else official_labels(private)
    division = divide(
        config,
        labels,
        seeds,
        None if public is None else shared_labels,
        None if private is None else own_labels,
        catalogue.source(own.used).classes,
    )
    size = int(config["data.image_size"])

    def images(split: str, indices: np.ndarray, origin: ResolvedData = data) -> torch.Tensor:
        if device == "meta":
            return torch.empty(
                (len(indices), source.shape[0], size, size), dtype=torch.uint8, device="meta"
            )
        return resize(
            torch.from_numpy(catalogue.load(origin.used)[split].images[indices]), size
        ).to(device)

    def targets(
        split: str, indices: np.ndarray, what: str = CLASS, origin: ResolvedData = data
    ) -> torch.Tensor:
        if what == CLASS:
            return torch.from_numpy((labels if origin is data else own_labels)[split][indices]).to(
                device
            )
        about = annotations_of(catalogue.source(origin.used))[what]
        if device == "meta":
            return torch.empty(
                (len(indices), *([about.size] if about.kind == MAP else []), size, size),
                device="meta",
            )
        return resize_targets(
            targets_of(about, annotated(catalogue.load(origin.used)[split], what)[indices]), size
        ).to(device)

    def identity(split: str, indices: np.ndarray, origin: ResolvedData = data, *what: str) -> str:
        content = digest(np.ascontiguousarray(indices).astype("<i8").tobytes())
        return digest([origin.used, origin.digest, split, size, content, *what])

    asked = TASKS[str(config.get("data.task", "classification"))]
    what = [asked] if asked != CLASS else []
    task = task_of(annotations_of(source)[asked])

    def labelled(split: str, indices: np.ndarray) -> LabelledSet:
        return LabelledSet(
            images(split, indices),
            targets(split, indices, asked),
            identity(split, indices, data, *what),
        )

    def network_of(role: str, task: Task) -> str:
        name = str(config.get(f"network.{role}", role))  # a role may name a network itself
        return name + (DENSE if task.dense else "")

    held = np.unique(np.concatenate(division.clients))  # what any client holds, once
    pool = images("train", held, own)
    pool_targets = functools.cache(
        lambda annotation: targets("train", held, annotation, own)
    )  # one copy for all clients
    teachers = str(config.get("partition.teachers", CLASS)).split("+")
    own_source = catalogue.source(own.used)
    sees = Normalisation(own_source.mean, own_source.std) if private is not None else None
    clients = []
    for index, role in enumerate(roles(str(config["network.client"]), len(division.clients))):
        indices, annotation = division.clients[index], teachers[index % len(teachers)]
        own_task = (
            task_of(annotations_of(catalogue.source(own.used))[annotation])
            if private is not None
            else None
        )
        own_targets = pool_targets(annotation)
        if division.groups:
            group = division.groups[index]
            own_task, own_targets = (
                Classification(len(group)),
                own_targets - group.start,
            )  # a client numbers its classes from 0
        positions = np.searchsorted(held, indices)
        counts: tuple[int, ...] = ()
        if annotation == CLASS:
            numbers = own_labels["train"][indices] - (
                division.groups[index].start if division.groups else 0
            )
            counts = tuple(
                int(n) for n in np.bincount(numbers, minlength=(own_task or task).outputs)
            )
        shard = Shard(pool, own_targets, torch.from_numpy(positions).to(device))
        numbered = [str(division.groups[index])] if division.groups else []
        digests = identity(
            "train", indices, own, *numbered, *([annotation] if annotation != CLASS else [])
        )
        clients.append(
            Client(
                index,
                role,
                network_of(role, own_task or task),
                shard,
                counts,
                digests,
                own_task,
                sees,
            )
        )
    if augmentation_of(config) is not None and any(
        found.dense for found in (task, *(c.task or task for c in clients))
    ):
        raise ValueError(
            "images with targets for every pixel are not augmented: the targets would stay; leave"
            " augmentation.* off"
        )
    return Federation(
        clients=clients,
        public=PublicData(
            images(division.public_split, division.public, shared),
            identity(division.public_split, division.public, shared),
        ),
        test=labelled("test", division.test),
        validation=labelled("train", division.validation) if len(division.validation) else None,
        probe=(
            labelled(str(config.get("partition.target_split", "train")), division.probe)
            if len(division.probe)
            else None
        ),
        task=task,
        network=network_of(str(config["network.server"]), task),
        image_shape=(source.shape[0], size, size),
        normalise=Normalisation(source.mean, source.std),
        seeds=seeds,
        stages=stages,
        channel=channel,
        device=device,
        execution=execution,
        oracle_labels=targets(division.public_split, division.public) if public is None else None,
        progress=progress,
        **common_parts(config, method),
    )
