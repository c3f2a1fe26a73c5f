"""DS-FL: distillation-based semi-supervised federated learning for communication-efficient
collaborative training with non-IID private data (Itahara et al., TMC 2021).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import nn

from fedtables.federation.channel import Packed
from fedtables.federation.client import Client
from fedtables.federation.data import Checkpoint, fetch
from fedtables.federation.federation import Federation
from fedtables.federation.method import Method
from fedtables.federation.shared.consensus import digest, mean_answer
from fedtables.federation.training.plan import TrainingPlan
from fedtables.privacy.plan import DP_SGD
from fedtables.results.numbers import Count, Positive, SomeShare


def entropy_reduction(mean: torch.Tensor, temperature: float) -> torch.Tensor:
    """softmax(p / T) over the classes, of mean probabilities p (n, classes, ...): entropy reduction
    aggregation (Itahara et al. 2021).

    The softmax is of probabilities, not of logits: T = 1 flattens, and a small T sharpens.
    """
    return (mean / temperature).softmax(dim=1)


Pairs = Sequence[tuple[Client, nn.Module]]
"""The clients that take part in a round, each with its own network."""


@dataclass(frozen=True)
class DSFL(Method):
    """Update, predict, upload, aggregate, broadcast and distil, in each round in this order.

    Networks may differ between clients, which keep theirs from round to round. A round draws its
    public images from a seed that all know. The global model is a network of the server's, which
    learns the same labels. In code by the same group (SCARLET's) clients distil a round's labels
    when the next begins, and never see the last.
    """

    title = "DS-FL"
    sends = frozenset({"logits"})
    protected: ClassVar[Mapping[str, frozenset[str]]] = {DP_SGD: sends}
    quick: ClassVar[Mapping[str, Any]] = {
        "rounds": 4,
        "public_samples": 100,
        "distillation_batch_size": 10,
    }

    rounds: Count = 100
    """Rounds of communication (assumed; SCARLET's code has 2,000)."""
    participation: SomeShare = 1.0
    """Share of the clients in a round (SCARLET's code)."""
    public_samples: Count = 1_000
    """Public images in a round (SCARLET's code)."""
    local_epochs: Count = 5
    """Epochs on the private data in a round, by the run's local plan (SCARLET's code)."""
    distillation_epochs: Count = 5
    """Epochs on the labels in a round, of clients and server (SCARLET's code)."""
    distillation_batch_size: Count = 100
    """Public images in a step of distillation (SCARLET's code)."""
    distillation_lr: Positive = 0.1
    """Learning rate of plain SGD in distillation (SCARLET's code)."""
    temperature: Positive = 0.1
    """T of the entropy reduction (paper)."""

    def fit(self, federation: Federation) -> Checkpoint:
        networks, public, task = federation.networks, federation.public, federation.task
        if task.classes is None or not len(public):
            raise ValueError(f"{self.title} needs public images and a task of classes")
        local = replace(federation.local, epochs=self.local_epochs)
        drawn = [
            federation.streams.participants(number + 1, self.participation)
            for number in range(self.rounds)
        ]
        federation.privacy.reserve((local, Counter(c.index for part in drawn for c in part)))
        epochs, lr = self.distillation_epochs, self.distillation_lr
        plan = TrainingPlan(epochs, self.distillation_batch_size, lr, "sgd")
        server = networks.initial()
        models = {c.index: networks.initial(c.network) for c in federation.clients if c.size}
        kept = self.kept(federation, list(models))
        owned: dict[str, Any] = {f"client-{index}": model for index, model in models.items()}
        for number in federation.rounds(self.rounds, server=server, **owned, **kept):
            pairs = [(client, models[client.index]) for client in drawn[number - 1]]
            for pair in pairs:
                federation.train_on_clients([pair], local, "local", number)
            # Of content in a plan too, so that it knows which images come again.
            stream = federation.streams.seeds.numpy("shuffling", "public", number)
            chosen = torch.from_numpy(stream.permutation(len(public))[: self.public_samples])
            order, labels, received = self.exchange(federation, number, pairs, chosen, kept)
            images = public.cut(fetch(public.images, order.to(networks.device)))
            for (client, model), own in zip(pairs, received, strict=True):
                learnt = (images, public.cut(own), task.distillation_loss, plan)
                digest(federation, client, model, *learnt, "digest", client.index, number)
            learnt = (images, public.cut(labels), task.distillation_loss, plan)
            federation.train(server, *learnt, "server", number, augmented=False)
            federation.evaluation.track(server)
        return networks.checkpoint(server)

    def kept(self, federation: Federation, clients: Sequence[int]) -> dict[str, Any]:
        """What is kept from round to round beside networks, by name."""
        return {}

    def exchange(
        self, federation: Federation, number: int, pairs: Pairs, chosen: torch.Tensor, kept: Any
    ) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
        """Clients answer for the images at `chosen` (n,), and labels go down.

        Returns positions (n,) on the CPU in the order to learn, their labels (n, classes, ...), and
        these as each client has them.
        """
        labels, down = self.agree(federation, pairs, chosen), federation.channel.down
        sent = Packed(labels=labels)
        received = [down(client.index, "logits", sent) for client, _ in pairs]
        return chosen, labels, [message["labels"] for message in received]

    def agree(self, federation: Federation, pairs: Pairs, chosen: torch.Tensor) -> torch.Tensor:
        """The clients send probabilities of images at `chosen` (n,), whose mean becomes labels (n,
        classes, ...).
        """
        images = fetch(federation.public.images, chosen.to(federation.networks.device))
        return self.sharpened(mean_answer(federation, pairs, images, federation.task.probabilities))

    def sharpened(self, mean: torch.Tensor) -> torch.Tensor:
        """The labels that mean probabilities (n, classes, ...) become."""
        return entropy_reduction(mean, self.temperature)
