"""Centralized training, an upper bound: all samples in one place, as FL exists to avoid."""

from dataclasses import dataclass

import torch

from fedtables.federation.client import Client, Shard
from fedtables.federation.data import Checkpoint
from fedtables.federation.federation import Federation
from fedtables.federation.method import Method


@dataclass(frozen=True)
class Centralized(Method):
    """Clients send every sample they hold, once; the server trains on all of them."""

    title = "Centralized"
    sends = frozenset({"images", "labels"})
    oracle = frozenset({"private-samples"})

    def fit(self, federation: Federation) -> Checkpoint:
        shards = [self.send(federation, client) for client in federation.clients]
        images, targets = (torch.cat(part) for part in zip(*shards, strict=True))
        model = federation.networks.initial()
        federation.train(
            model,
            images,
            targets,
            federation.task.loss,
            federation.local,
            "centralized",
            track=True,
            label="centralized",
        )
        return federation.networks.checkpoint(model)

    def send(self, federation: Federation, client: Client) -> tuple[torch.Tensor, torch.Tensor]:
        """A client's images and targets, as they arrive at the server."""

        def upload(shard: Shard) -> tuple[torch.Tensor, torch.Tensor]:
            channel, number = federation.channel, client.index
            images = channel.up(number, "images", {"images": shard.images})["images"]
            targets = shard.targets
            if federation.task.dense and not targets.is_floating_point():
                targets = targets.long()  # as labels cross
            return images, channel.up(number, "labels", {"targets": targets})["targets"]

        return client.run(upload)
