"""What the contract changes in a federation's data between two fits of a method, and what a payload
tells by how it changes with them.

A value that is a pixel, however scaled, moved or cast, is `c` minus itself where images are
inverted, with one `c` for all pixels. What is learnt of images is not.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from benchmarks.scenarios.scenario import ClientPart, Parts
from federation.client import Shard

FEWEST = 4
"""So many values, and three times what chance explains, tell nothing."""
NEAR = 1e-3
"""Deviation that counts as none, of the change in a value: half precision has less."""


def inverted(samples: torch.Tensor) -> torch.Tensor:
    """Stored samples, uint8 or float32 in [0, 1], with dark for bright."""
    return 1 - samples if samples.is_floating_point() else ~samples


def with_other_samples(parts: Parts) -> Parts:
    """Clients 0, 2, ... hold inverted images with other targets."""
    clients = [client if n % 2 else _changed(client) for n, client in enumerate(parts.clients)]
    return replace(parts, clients=clients)


def _changed(client: ClientPart) -> ClientPart:
    shard, counts = client.shard, client.label_counts
    if shard.targets.is_floating_point() and shard.targets.shape == shard.images.shape:
        targets = inverted(shard.targets)
    else:
        targets = shard._targets.flip(0)[shard._indices]
    if counts and targets.ndim == 1:
        counts = tuple(torch.bincount(targets, minlength=len(counts)).tolist())
    return replace(client, shard=Shard(inverted(shard.images), targets), label_counts=counts)


def with_other_public_labels(parts: Parts) -> Parts:
    """The hidden labels of the public set are shuffled, where there are any."""
    labels = parts.oracle_labels
    return replace(parts, oracle_labels=None if labels is None else labels[_order(len(labels))])


def with_other_test_set(parts: Parts) -> Parts:
    """The test set has other images with other labels, of which a tenth are left."""
    images, targets = inverted(parts.test.images), parts.test.targets
    few = _order(len(targets))[torch.arange(len(targets)) % max(1, len(targets) // 10)]
    test = replace(parts.test, images=images, targets=targets[few])
    return replace(parts, test=test, further_tests={})


def _order(count: int) -> torch.Tensor:
    return torch.randperm(count, generator=torch.Generator().manual_seed(1))


def pixels_in(before: torch.Tensor, after: torch.Tensor) -> int:
    """How many different values of a tensor are pixels, by the same tensor of inverted images; 0
    where chance explains them, as values that are paired at random say.
    """
    if before.shape != after.shape:
        return 0
    values = torch.stack([before.flatten(), after.flatten()]).double()
    one, other = values[:, values[0] != values[1]].unique(dim=1)
    order, width = _order(len(one)), NEAR * (one - other).abs()
    found, by_chance = _alike(one + other, width), _alike(one + other[order], width)
    return found if found > FEWEST + 3 * by_chance else 0


def _alike(values: torch.Tensor, width: torch.Tensor) -> int:
    """How many of the values (n,), each give or take its width, have a point in common at most."""
    ends = torch.cat([values - width, values + width])
    steps = torch.cat([torch.ones_like(values), -torch.ones_like(values)])
    return int(steps[ends.argsort(stable=True)].cumsum(dim=0).max()) if len(values) else 0
