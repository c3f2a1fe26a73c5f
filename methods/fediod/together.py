"""FedIOD's clients as one computation, as many as `Execution.stacked` says: their teachers, and
their discriminators, whose step they take together.

What crosses is what crosses of one after another, and every client draws what it would draw alone,
so results are the same up to rounding. Private runs, which take no execution options, and plans,
where the order costs nothing, have one client after another.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from federation.blocks.learner import Learner
from federation.blocks.remote import ask_together
from federation.federation import Federation
from federation.parties.client import Client, Shard
from federation.parts.stacked import Stack
from federation.seeds import Stream
from methods.fediod.losses import discriminator_loss
from methods.fediod.parties import (
    ANSWERED,
    Answer,
    Node,
    make_learner,
    make_nodes,
    own_inputs,
    stream_names,
)
from methods.fediod.settings import Settings

OnClients = Callable[[Sequence[torch.Tensor], Sequence[Shard]], list[dict[str, torch.Tensor]]]
"""What clients answer by kind, each to the images that it has received."""


@dataclass
class Group:
    """Several clients in the second stage; each has a row of its own in all of this."""

    settings: Settings
    federation: Federation
    clients: Sequence[Client]
    teachers: dict[str, Stack]
    """By network."""
    discriminators: Learner
    """A `Stack`, whose matrix Adam takes for one parameter: its rule is of each number alone."""
    streams: list[Stream] = field(init=False)
    """What each draws in the present epoch."""

    def begin_epoch(self, epoch: int) -> None:
        """Draw from the streams of `epoch` from now on."""
        streams = self.federation.streams
        self.streams = [streams.shuffling(*stream_names(c, epoch)) for c in self.clients]

    def parts(self) -> dict[str, Any]:
        """What a snapshot keeps, by name."""
        first, last = self.clients[0].index, self.clients[-1].index
        return self.discriminators.parts(f"{first} to {last} discriminators")

    def answers(self, images: torch.Tensor) -> list[Answer]:
        """Each client's part of a step on images (n, c, h, w), as `Node.answer`."""
        own_scores: Sequence[torch.Tensor] = ()

        def on_clients(
            received: Sequence[torch.Tensor], shards: Sequence[Shard]
        ) -> list[dict[str, torch.Tensor]]:
            nonlocal own_scores
            every = torch.cat(list(received))
            own_scores = self.train_discriminators(shards, every.detach()).unbind()
            scores = self.federation.forward(self.discriminators.module, every)
            answers = zip(self.taught(received), scores.chunk(len(shards)), strict=True)
            return [dict(zip(ANSWERED, answer, strict=True)) for answer in answers]

        asked = self.ask(images, on_clients, ANSWERED)
        up = self.federation.channel.up
        return [
            (logits, scores, up(client.index, "discriminator-outputs", {"own": own})["own"])
            for client, (logits, scores), own in zip(self.clients, asked, own_scores, strict=True)
        ]

    def logits(self, images: torch.Tensor) -> list[torch.Tensor]:
        """Each client's logits for images (n, c, h, w), without gradients: (n, classes)."""

        def on_clients(
            received: Sequence[torch.Tensor], shards: Sequence[Shard]
        ) -> list[dict[str, torch.Tensor]]:
            return [{"logits": logits} for logits in self.taught(received)]

        return [logits for (logits,) in self.ask(images, on_clients, ("logits",))]

    def ask(
        self, images: torch.Tensor, on_clients: OnClients, kinds: Sequence[str]
    ) -> list[tuple[torch.Tensor, ...]]:
        """What the clients answer to images (n, c, h, w), each by kind, over the channel."""
        indices = [client.index for client in self.clients]

        def answers(received: Sequence[torch.Tensor]) -> list[dict[str, torch.Tensor]]:
            return Client.run_together(self.clients, functools.partial(on_clients, received))

        return ask_together(self.federation.channel, indices, images, answers, kinds)

    def taught(self, received: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """T_k(x) (n, classes) of each client for what it has received, (n, c, h, w)."""
        found: dict[int, torch.Tensor] = {}
        for network, teachers in self.teachers.items():
            own = [p for p, client in enumerate(self.clients) if client.network == network]
            logits = self.federation.forward(teachers, torch.cat([received[p] for p in own]))
            found |= zip(own, logits.chunk(len(own)), strict=True)
        return [found[position] for position in range(len(received))]

    def train_discriminators(
        self, shards: Sequence[Shard], generated: torch.Tensor
    ) -> torch.Tensor:
        """A step of every D_k on the images that it has received, of (clients x n, c, h, w), and as
        many of its own; returns E[D_k(x')] of these batches, (clients,).
        """
        count = len(generated) // len(shards)
        chosen = torch.cat(
            [
                shard.images_at(stream.choose(len(shard), count))
                for shard, stream in zip(shards, self.streams, strict=True)
            ]
        )
        generators = [stream.generator for stream in self.streams]
        own = own_inputs(self.settings, self.federation, chosen, generators)
        on_generated, on_own = (
            self.federation.forward(self.discriminators.module, images).unflatten(
                0, (len(shards), count)
            )
            for images in (generated, own)
        )
        loss = functools.partial(discriminator_loss, logarithmic=self.settings.logarithmic)
        torch.func.vmap(loss)(on_generated, on_own).sum().backward()
        self.discriminators.step()
        return on_own.detach().sigmoid().mean(dim=(1, 2, 3))


Party = Node | Group
"""Who answers in a step: a client by itself, or several."""


def make_parties(settings: Settings, federation: Federation) -> list[Party]:
    """All clients that have samples, as `make_nodes`, in groups of at most `Execution.stacked`."""
    nodes = make_nodes(settings, federation)
    size = federation.networks.execution.stacked
    groups = [nodes[start : start + size] for start in range(0, len(nodes), size)]
    return [group[0] if len(group) == 1 else make_group(group) for group in groups]


def make_group(nodes: Sequence[Node]) -> Group:
    """These clients as one; their nodes are not to be used any longer."""
    settings, federation = nodes[0].settings, nodes[0].federation
    clients = [node.client for node in nodes]
    teachers = {
        network: Stack([node.teacher for node in nodes if node.client.network == network])
        for network in dict.fromkeys(client.network for client in clients)
    }
    discriminators = Stack([node.discriminator.module for node in nodes])
    learner = make_learner(settings, federation, discriminators)
    return Group(settings, federation, clients, teachers, learner)
