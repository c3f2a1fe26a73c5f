"""The fits by which the contract judges a method: on small federations, of changed data; and what a
payload tells by how it changes with them.

A value that is a pixel, however scaled, moved or cast, is `c` minus itself where images are
inverted, with one `c` for all pixels. What is learnt of images is not.
"""

from __future__ import annotations

import contextlib
import functools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import safetensors.torch
import torch

from fedtables.benchmarks.scenarios.assembly import assemble
from fedtables.benchmarks.scenarios.configuration import Configuration
from fedtables.benchmarks.scenarios.small import shortened, small_config, small_data
from fedtables.benchmarks.tables.registry import find_scenario
from fedtables.datasets.access import while_fitting
from fedtables.federation.cache import StageCache, content_digest
from fedtables.federation.channel import Channel, Transfer, encode
from fedtables.federation.client import Shard
from fedtables.federation.execution import Execution
from fedtables.federation.federation import Federation
from fedtables.federation.fitting import listed
from fedtables.federation.graphs import on_the_cpu
from fedtables.federation.method import Fitted, Method
from fedtables.federation.parts import ClientPart, Parts, Run
from fedtables.federation.seeds import Seeds
from fedtables.federation.surroundings import put_back

FEWEST = 4
"""So many values, and three times what chance explains, tell nothing."""
NEAR = 1e-3
"""Deviation that counts as none, of the change in a value: half precision has less."""


class BrokenContractError(AssertionError):
    """A method does not keep the contract; the message says which part, and what to do."""


@dataclass(frozen=True)
class SentMessage:
    """What a client sends, as it is encoded."""

    kind: str
    client: int
    content: bytes

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        return safetensors.torch.load(self.content)


@dataclass(eq=False)
class Fit:
    """One run of the method under test."""

    method: Method
    brief: bool = True
    """Too short to learn much, with one local epoch and two rounds."""
    seed: int = 0
    changes: Sequence[Callable[[Parts], Parts]] = ()
    """What is changed of its data, by functions of this file."""
    mechanism: str = ""
    """Of differential privacy."""
    noise: int = 0
    """Seed of that noise."""
    replay: Fit | None = None
    """Deliver to the server what clients sent in this other run."""
    graphs: Literal["", "taken", "replayed"] = ""
    """Train as under `--compile graphs`, by steps that are `taken`, or recorded and `replayed`."""
    _messages: list[SentMessage] = field(default_factory=list, init=False)

    def _deliver(
        self, transfer: Transfer, received: dict[str, torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        if transfer.direction == "down":
            return received
        sent = SentMessage(transfer.kind, transfer.client, encode(received))
        self._messages.append(sent)
        if self.replay is None:
            return received
        before = self.replay.sent[len(self._messages) - 1 :][:1]
        forms = [(m.kind, m.client, sorted(m.tensors)) for m in (sent, *before)]
        if forms[:1] != forms[1:]:
            raise BrokenContractError(
                f"what client {transfer.client} sends next depends on its private samples: their"
                " values, not the order, number or names of messages, may tell of them"
            )
        return before[0].tensors

    @functools.cached_property
    def federation(self) -> Federation:
        kind = type(self.method)
        axes = ("partition", "weights", "sampling", "shuffling")
        seeds = replace(Seeds.moving(axes, self.seed), noise=self.noise)
        configuration = Configuration.parse(small_config(kind, self.brief, self.mechanism))
        scenario = find_scenario(configuration.data.task)
        parts = scenario.parts(configuration, small_data(kind), seeds, "cpu")
        for change in self.changes:
            parts = change(parts)
        execution = Execution(compile="graphs" if self.graphs else "off")
        channel = Channel(deliver=self._deliver)
        run = Run(seeds, StageCache(None), channel=channel, execution=execution)
        return assemble(parts, configuration, kind, run)

    @functools.cached_property
    def fitted(self) -> Fitted:
        """What it learns; flags and generators are afterwards as before."""
        method = shortened(self.method) if self.brief else self.method
        federation, _ = self.federation, self.replay and self.replay.fitted
        replayed = on_the_cpu() if self.graphs == "replayed" else contextlib.nullcontext()
        with put_back(), replayed, while_fitting():
            torch.set_num_threads(1)
            for move in (torch.seed, random.seed, np.random.seed):
                move()  # no two fits draw alike from generators that no seed reaches
            fitted = method.fit(federation)
        if self.replay and len(self._messages) < len(self.replay.sent):
            raise BrokenContractError("that clients send less than before tells of their samples")
        return fitted

    @functools.cached_property
    def modules(self) -> list[torch.nn.Module]:
        """The learnt model or models."""
        networks, fitted = self.federation.networks, self.fitted
        if isinstance(fitted, torch.nn.Module):
            fitted = networks.checkpoint(fitted)
        try:
            return [networks.module(checkpoint) for checkpoint in listed(fitted)]
        except TypeError as error:
            raise BrokenContractError(str(error)) from error

    @functools.cached_property
    def digests(self) -> list[str]:
        """Of what is learnt."""
        return [content_digest(module.state_dict()) for module in self.modules]

    @property
    def sent(self) -> list[SentMessage]:
        """What clients send, in order."""
        _ = self.fitted
        return self._messages


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
