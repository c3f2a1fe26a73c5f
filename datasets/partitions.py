"""Partitions: which client holds which samples. Pure functions of labels, sizes and a random
generator.

Every function returns index arrays into the labels it was given. Sources: DLAD (Ma et al. 2020),
section V-A and Table I; FedKD (Gong et al. 2022) and FedIOD (Gong et al. 2024), released split
code; FedDF (Lin et al. 2020), released split code; FedSA (Xie et al. 2022), section 4.1 and
released split code; AsynDGAN (Chang et al. 2020), released split code.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from fedtables.datasets.source import DataError

CLASS_SETS: dict[str, tuple[tuple[int, ...], ...]] = {
    "iid": (tuple(range(10)),) * 5,
    "niid1": ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9)),
    "niid2": tuple((0, 1, 2, 3, 4, last) for last in (5, 6, 7, 8, 9)),
    "niid3": ((0, 1, 2, 3), (0, 4, 5, 6), (1, 4, 7, 8), (2, 5, 7, 9), (3, 6, 8, 9)),
}
"""Table I of DLAD: the classes of clients U_{5n+1} ... U_{5n+5} under each distribution."""
OfClasses = Literal[
    "iid",
    "niid1",
    "niid2",
    "niid3",
    "dirichlet-fedkd",
    "dirichlet-feddf",
    "dirichlet-feddf-released",
    "by-group",
]
"""Kinds of partition of samples that have one class each; by-group needs samples with groups."""
Kind = Literal[OfClasses, "class-groups", "everyone", "by-site", "by-size", "by-class"]
"""All kinds: also of the classes of a private data set, and of what sites, sizes or institutions
tell apart."""


class PartitionError(DataError):
    """The partition asked for cannot exist; the message says why and what would."""


def _require_samples(samples: int, clients: int, what: str = "samples") -> None:
    if clients < 1:
        raise PartitionError(f"a partition needs at least one client, not {clients}")
    if samples < clients:
        raise PartitionError(
            f"{clients} clients cannot share {samples} {what}; use at most {samples} clients"
        )


def class_set_probabilities(distribution: str, clients: int) -> np.ndarray:
    """Class probabilities p_i of each client, shape (clients, 10): uniform over the client's
    classes of Table I.

    Raises PartitionError for an unknown distribution or a number of clients that is not a multiple
    of five, since Table I describes clients in groups of five.
    """
    if distribution not in CLASS_SETS:
        raise PartitionError(
            f"unknown distribution {distribution!r}; known: {', '.join(CLASS_SETS)}"
        )
    if clients < 5 or clients % 5:
        near = sorted({max(5, clients // 5 * 5), max(5, -(-clients // 5) * 5)})
        raise PartitionError(
            f"{distribution} describes clients in groups of five, so {clients} clients are"
            f" impossible; use {' or '.join(str(n) for n in near)}"
        )
    probabilities = np.zeros((clients, 10))
    for client in range(clients):
        classes = CLASS_SETS[distribution][client % 5]
        probabilities[client, list(classes)] = 1 / len(classes)
    return probabilities


def split_public(
    samples: int, share: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Random disjoint split of `range(samples)` into round(share x samples) indices that are held
    out, as public or for validation, and the client pool.

    Raises PartitionError for a share below 0 or of 1 and above.
    """
    if not 0 <= share < 1:
        raise PartitionError(f"the share held out must be at least 0 and below 1, not {share}")
    order = rng.permutation(samples)
    cut = round(share * samples)
    return np.sort(order[:cut]), np.sort(order[cut:])


def split_groups(
    groups: np.ndarray, share: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Random disjoint split of the samples of `groups` (n,), such as patients, that keeps each
    group together.

    Returns the indices of all samples of round(share x groups) groups, and of the others.
    """
    names = np.unique(groups)
    chosen, _ = split_public(len(names), share, rng)
    held = np.isin(groups, names[chosen])
    return np.flatnonzero(held), np.flatnonzero(~held)


def one_positive(positives: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One class for each sample of a multi-label set, for partitions by class: one of its
    positives, each equally likely.

    `positives` (n, classes) is True where a class is present; a sample without any gets the class
    after the last. FedAD, section 4.1.2.
    """
    chance = np.where(positives, rng.random(positives.shape), -1.0)
    return np.where(positives.any(axis=1), chance.argmax(axis=1), positives.shape[1])


def exact_counts(probabilities: np.ndarray, size: int) -> np.ndarray:
    """Integer class counts that sum to `size` and follow `probabilities`, by largest remainder."""
    ideal = probabilities * size
    counts = np.floor(ideal + 1e-9).astype(int)
    for label in np.argsort(-(ideal - counts), kind="stable")[: size - counts.sum()]:
        counts[label] += 1
    return counts


def draw_by_class(
    labels: np.ndarray, probabilities: np.ndarray, size: int, rng: np.random.Generator
) -> np.ndarray:
    """`size` indices, drawn with replacement inside each class, in the exact proportions of
    `probabilities`.

    DLAD, section V-A: |D_i| is half the pool, "allowing duplicates"; under NIID1 a client needs
    2,500 samples of a class of which the pool has 1,000. Raises PartitionError if a class with
    positive probability has no sample.
    """
    parts = []
    for label, count in enumerate(exact_counts(probabilities, size)):
        if count == 0:
            continue
        candidates = np.flatnonzero(labels == label)
        if candidates.size == 0:
            raise PartitionError(
                f"the client pool has no sample of class {label}; make the pool larger"
            )
        parts.append(rng.choice(candidates, count, replace=True))
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def deal_by_class(
    labels: np.ndarray, probabilities: np.ndarray, size: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """`size` indices for every client, in the exact proportions of its row of `probabilities`
    (clients, classes), such that no sample is dealt twice.

    Raises PartitionError if a class has fewer samples than its clients need.
    """
    wanted = np.stack([exact_counts(p, size) for p in probabilities])
    parts: list[list[np.ndarray]] = [[] for _ in wanted]
    for label, counts in enumerate(wanted.T):
        candidates = rng.permutation(np.flatnonzero(labels == label))
        if counts.sum() > candidates.size:
            raise PartitionError(
                f"without duplicates {len(wanted)} clients need {counts.sum()} samples of class"
                f" {label}, and the pool has {candidates.size}; lower partition.client_share, or"
                " take fewer clients"
            )
        for part, drawn in zip(parts, np.split(candidates, np.cumsum(counts)), strict=False):
            part.append(drawn)
    return [np.concatenate(pieces) for pieces in parts]


def dirichlet_fedkd(
    labels: np.ndarray,
    clients: int,
    alpha: float,
    rng: np.random.Generator,
    proportions: np.ndarray | None = None,
) -> list[np.ndarray]:
    """The Dirichlet split of FedKD and FedIOD.

    For each class on its own, a vector p ~ Dir(alpha); the class's samples in file order are cut
    into consecutive slices of floor(p_k n_c), and the last client takes the remainder. No shuffle,
    no minimum size: a client may stay empty. `proportions` (classes, clients) replaces the draws.
    """
    _require_samples(len(labels), clients)
    parts: list[list[np.ndarray]] = [[] for _ in range(clients)]
    for label in np.unique(labels):
        indices = np.flatnonzero(labels == label)
        p = rng.dirichlet(np.full(clients, alpha)) if proportions is None else proportions[label]
        cuts = np.cumsum(np.floor(p[:-1] * indices.size).astype(int))
        for client, piece in enumerate(np.split(indices, cuts)):
            parts[client].append(piece)
    return [np.concatenate(pieces) for pieces in parts]


def dirichlet_feddf(
    labels: np.ndarray,
    clients: int,
    alpha: float,
    rng: np.random.Generator,
    *,
    released: bool = False,
    tries: int = 10_000,
) -> list[np.ndarray]:
    """The Dirichlet split of FedDF.

    Samples are shuffled and dealt to groups of ten clients. Within a group each class is divided by
    a Dirichlet draw in which clients that already hold the average get nothing; the draw is
    repeated until the smallest client holds at least half the average. `released` then joins the
    lists and cuts them into equal pieces, as the released class does, so that every client ends
    with the same number of samples and neighbours mix.

    Raises PartitionError if no draw meets the minimum within `tries`.
    """
    _require_samples(len(labels), clients)
    order = rng.permutation(len(labels))
    groups = [range(start, min(start + 10, clients)) for start in range(0, clients, 10)]
    ends = itertools.accumulate(len(group) for group in groups)
    chunks = np.split(order, [round(len(order) * end / clients) for end in ends][:-1])
    parts: list[np.ndarray] = []
    for group, chunk in zip(groups, chunks, strict=True):
        parts.extend(_balanced_group(labels, chunk, len(group), alpha, rng, tries))
    if released:
        parts = np.array_split(np.concatenate(parts), clients)
    return parts


def _balanced_group(
    labels: np.ndarray,
    samples: np.ndarray,
    clients: int,
    alpha: float,
    rng: np.random.Generator,
    tries: int,
) -> list[np.ndarray]:
    average = len(samples) / clients
    for _ in range(tries):
        parts = [np.empty(0, dtype=np.int64)] * clients
        for label in np.unique(labels):
            shuffled = rng.permutation(samples[labels[samples] == label])
            p = rng.dirichlet(np.full(clients, alpha)) * np.array(
                [len(part) < average for part in parts]
            )
            if p.sum() == 0:
                p = np.ones(clients)
            cuts = (np.cumsum(p / p.sum())[:-1] * shuffled.size).astype(int)
            parts = [
                np.concatenate(pair) for pair in zip(parts, np.split(shuffled, cuts), strict=True)
            ]
        if min(map(len, parts)) >= 0.5 * average:
            return parts
    raise PartitionError(
        f"no Dirichlet draw with alpha={alpha} gave every one of {clients} clients half the average"
        f" of {math.floor(average)} samples; raise alpha or use fewer clients"
    )


def class_groups(
    labels: np.ndarray, clients: int, classes: int | None = None
) -> tuple[list[np.ndarray], list[range]]:
    """FedSA's private sets: each client holds all samples of its own block of consecutive classes.

    Returns each client's indices, in file order, and its classes: 1000 classes among 10 clients are
    0 to 99, 100 to 199 and so on; where they do not divide, the first clients have one class more.
    `classes` is how many the data set has; by default the highest label settles it. Raises
    PartitionError for more clients than classes, a client whose classes have no sample, and labels
    outside of the classes.
    """
    _require_samples(len(labels), clients)
    if classes is None:
        classes = int(labels.max()) + 1
    if not 0 <= labels.min() <= labels.max() < classes:
        raise PartitionError(
            f"labels {labels.min()} to {labels.max()} are not all among {classes} classes"
        )
    if clients > classes:
        raise PartitionError(
            f"{clients} clients cannot hold disjoint groups of {classes} classes; use at most"
            f" {classes} clients"
        )
    groups = [
        range(int(block[0]), int(block[-1]) + 1)
        for block in np.array_split(np.arange(classes), clients)
    ]
    parts = [np.flatnonzero((labels >= group.start) & (labels < group.stop)) for group in groups]
    for client, (part, group) in enumerate(zip(parts, groups, strict=True)):
        if part.size == 0:
            raise PartitionError(
                f"client {client} would hold nothing: no sample has a label from {group.start} to"
                f" {group.stop - 1}; use fewer clients or more samples"
            )
    return parts, groups


def draw_share_by_class(
    labels: np.ndarray, share: float, rng: np.random.Generator, *, consecutive: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """FedSA's probe set: round(share x n_c) of the n_c samples of each class, at least one, and the
    rest; both sorted.

    `consecutive` draws as the released script does: one random place among the first 3,000 samples
    of the file, and of each class the samples that come next from there. Where a class has too few
    left, its run ends at its last sample; it never goes on at the beginning. Raises PartitionError
    unless 0 < share <= 1.
    """
    if not 0 < share <= 1:
        raise PartitionError(f"the share of each class must be above 0 and at most 1, not {share}")
    start = int(rng.integers(min(3000, max(1, len(labels))))) if consecutive else 0
    drawn = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        indices = np.flatnonzero(labels == label)
        count = max(1, round(share * indices.size))
        if consecutive:
            first = min(int(np.searchsorted(indices, start)), indices.size - count)
            drawn[indices[first : first + count]] = True
        else:
            drawn[rng.choice(indices, count, replace=False)] = True
    return np.flatnonzero(drawn), np.flatnonzero(~drawn)


def by_size(groups: np.ndarray, sizes: np.ndarray, clients: int) -> list[np.ndarray]:
    """Clients of consecutive sizes, as AsynDGAN and FedIOD (Table 2) share subjects by tumour.

    `groups` (n,) says whose each sample is and `sizes` (n,) how much of it a sample has, such as
    its voxels of tumour. Groups in ascending order of their sums, and of their numbers where these
    are equal, are cut into as many consecutive chunks as there are clients, the first of them one
    group larger where it does not come out even; a client gets all samples of its groups, in file
    order. Raises PartitionError for more clients than groups.
    """
    names, places = np.unique(groups, return_inverse=True)
    _require_samples(len(names), clients, "groups")
    totals = np.bincount(places, weights=sizes, minlength=len(names))
    order = np.lexsort((names, totals))
    return [np.flatnonzero(np.isin(places, chunk)) for chunk in np.array_split(order, clients)]


def by_site(groups: np.ndarray, sites: np.ndarray, clients: int) -> list[np.ndarray]:
    """Clients of whole sites, or of parts of sites that keep groups together.

    `groups` (n,) says whose each sample is and `sites` (n,) where that is; a group has one site.
    With as many clients as sites each has one, in the order of the sites' numbers. With fewer,
    sites are dealt in descending order of their groups to whoever has the fewest groups so far, and
    with more, the site with the most groups for each of its clients is divided again, its groups in
    ascending order into consecutive chunks. Raises PartitionError for more clients than groups and
    for a group of two sites.
    """
    names, firsts, places = np.unique(groups, return_index=True, return_inverse=True)
    _require_samples(len(names), clients, "groups")
    site_of = sites[firsts]
    if (site_of[places] != sites).any():
        split = names[places[np.flatnonzero(site_of[places] != sites)[0]]]
        raise PartitionError(f"group {split} has samples of two sites")
    members = [np.flatnonzero(site_of == site) for site in np.unique(site_of)]
    if clients >= len(members):
        parts = [1] * len(members)
        for _ in range(clients - len(members)):
            largest = max(range(len(members)), key=lambda k: (len(members[k]) / parts[k], -k))
            parts[largest] += 1
        chosen = [
            chunk
            for own, count in zip(members, parts, strict=True)
            for chunk in np.array_split(own, count)
        ]
    else:
        dealt: list[list[int]] = [[] for _ in range(clients)]
        for site in sorted(range(len(members)), key=lambda k: (-len(members[k]), k)):
            fewest = min(
                range(clients), key=lambda k: (sum(len(members[own]) for own in dealt[k]), k)
            )
            dealt[fewest].append(site)
        chosen = [np.concatenate([members[site] for site in own]) for own in dealt]
    return [np.flatnonzero(np.isin(places, own)) for own in chosen]


def by_group(groups: np.ndarray, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Clients of whole groups, such as writers: no group has samples at two clients.

    `groups` (n,) says whose each sample is. Groups in a random order are cut into as many chunks as
    there are clients, of which the first have one group more where it does not come out even; a
    client gets all samples of its groups, in file order. Raises PartitionError for more clients
    than groups. With a client for each writer it is LEAF's FEMNIST (Caldas et al. 2018).
    """
    names, places = np.unique(groups, return_inverse=True)
    _require_samples(len(names), clients, "groups")
    chunks = np.array_split(rng.permutation(len(names)), clients)
    return [np.flatnonzero(np.isin(places, chunk)) for chunk in chunks]


def label_counts(labels: np.ndarray, parts: Sequence[np.ndarray], classes: int) -> np.ndarray:
    """Samples of each class on each client, shape (clients, classes)."""
    return np.stack([np.bincount(labels[part], minlength=classes) for part in parts])
