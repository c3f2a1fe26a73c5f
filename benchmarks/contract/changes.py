"""What the contract changes in a federation's data between two fits of a method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from benchmarks.scenarios.scenario import ClientPart, Parts
from federation.client import Shard

Halves = tuple[bool, bool]
"""Which halves of a client's samples are changed: the pixels of the one, and of targets that are
images; those of the other, and other targets."""
NEITHER: Halves = (False, False)
FIRST: Halves = (True, False)
SECOND: Halves = (False, True)
BOTH: Halves = (True, True)


def inverted(samples: torch.Tensor, where: torch.Tensor) -> torch.Tensor:
    """Stored samples (n, c, *sides), dark for bright in the pixels `where` (c, *sides): uint8, or
    float32 in [0, 1].
    """
    other = 1 - samples if samples.is_floating_point() else ~samples
    return torch.where(where, other, samples)


def half_of(samples: torch.Tensor) -> torch.Tensor:
    """Half of the pixels of samples, drawn once for all, bool (c, *sides)."""
    generator = torch.Generator().manual_seed(22)
    count = samples[0].numel()
    drawn = torch.randperm(count, generator=generator) < count // 2
    return drawn.view(samples.shape[1:])


def with_private_data(parts: Parts, changes: Sequence[Halves]) -> Parts:
    """The parts with some halves of each client's samples changed."""
    clients = [
        _changed(client, *halves) for client, halves in zip(parts.clients, changes, strict=True)
    ]
    return replace(parts, clients=clients)


def _changed(client: ClientPart, first: bool, second: bool) -> ClientPart:
    shard = client.shard
    images, targets, counts = shard.images, shard.targets, client.label_counts
    half = half_of(shard._images)
    are_images = targets.is_floating_point() and targets.shape == images.shape
    for where in [half] * first + [~half] * second:
        images = inverted(images, where)
        targets = inverted(targets, where) if are_images else targets
    if second and not are_images:
        targets = shard._targets.flip(0)[shard._indices]
        if counts and targets.ndim == 1:
            counts = tuple(torch.bincount(targets, minlength=len(counts)).tolist())
    return replace(client, shard=Shard(images, targets), label_counts=counts)


def with_hidden_data(parts: Parts, *, public_labels: bool, test: bool) -> Parts:
    """The parts with labels of the public set shuffled, and a test set of other images with other
    labels.
    """
    order = torch.Generator().manual_seed(1)
    labels, held = parts.oracle_labels, parts.test
    if public_labels and labels is not None:  # the scenario may have none to be read
        labels = labels[torch.randperm(len(labels), generator=order)]
    if test:
        everywhere = torch.ones(held.images.shape[1:], dtype=torch.bool)
        count = len(held.targets)  # a tenth of the targets, so that also their shares are others
        few = torch.randperm(count, generator=order)[torch.arange(count) % max(1, count // 10)]
        held = replace(held, images=inverted(held.images, everywhere), targets=held.targets[few])
        parts = replace(parts, further_tests={})
    return replace(parts, oracle_labels=labels, test=held)
