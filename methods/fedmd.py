"""FedMD: heterogeneous federated learning via model distillation (Li and Wang, 2019)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch

from fedtables.federation.channel import Packed
from fedtables.federation.client import Client
from fedtables.federation.data import Checkpoint, fetch
from fedtables.federation.federation import Federation
from fedtables.federation.method import Method
from fedtables.federation.shared.consensus import digest, mean_answer
from fedtables.federation.training.plan import TrainingPlan
from fedtables.privacy.plan import DP_SGD
from fedtables.results.numbers import Count, Positive


def absolute_error(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean absolute difference (n,) of logits (n, classes): FedMD's and FedKD's loss."""
    return (outputs - targets).abs().mean(dim=1)


@dataclass(frozen=True)
class FedMD(Method):
    """Algorithm 1: communicate logits on public data, agree on their mean, digest it, revisit the
    private data.

    Networks may differ between clients. Every round draws a fresh part of the public set. The paper
    first trains on the public labels; here the public set has other classes and no labels, so
    clients begin with their own data. They revisit it by the run's local plan, where the released
    code has Adam at 1e-3. FedMD has no central model; ours learns the clients' last consensus on
    the whole public set.
    """

    title = "FedMD"
    sends = frozenset({"logits"})
    protected: ClassVar[Mapping[str, frozenset[str]]] = {DP_SGD: sends}
    quick: ClassVar[Mapping[str, Any]] = {"rounds": 2, "public_samples": 100}

    rounds: Count = 20
    """Rounds of communication (released code, balanced setting)."""
    public_samples: Count = 5_000
    """Public images in a round (released code)."""
    digest_epochs: Count = 1
    """Epochs on the consensus in a round (released code)."""
    digest_batch_size: Count = 256
    """Batch size of digest (released code)."""
    digest_lr: Positive = 1e-3
    """Learning rate of Adam in digest (released code)."""
    revisit_epochs: Count = 4
    """Epochs on the private data in a round (released code, balanced setting)."""

    def fit(self, federation: Federation) -> Checkpoint:
        able = [client for client in federation.clients if client.size]
        revisit = replace(federation.local, epochs=self.revisit_epochs)
        federation.privacy.reserve(
            (federation.local, {c.index: 1 for c in able}),
            (revisit, {c.index: self.rounds for c in able}),
        )
        trained = federation.local_models()
        models = {c.index: federation.networks.module(trained[c.index]) for c in able}
        parts: dict[str, Any] = {f"client-{index}": model for index, model in models.items()}
        digest_plan = TrainingPlan(self.digest_epochs, self.digest_batch_size, self.digest_lr)
        cut = federation.public.cut
        for number in federation.rounds(self.rounds, **parts):
            # Drawn from a seed that all know, so that no image has to cross.
            stream = federation.streams.shuffling("public", number)
            chosen = stream.shuffled(len(federation.public))[: self.public_samples]
            images = fetch(federation.public.images, chosen)
            consensus = Packed(consensus=self.agree(federation, able, models, images))
            for client in able:
                model = models[client.index]
                target = federation.channel.down(client.index, "logits", consensus)["consensus"]
                names = ("digest", client.index, number)
                learnt = (cut(images), cut(target), absolute_error, digest_plan)
                digest(federation, client, model, *learnt, *names)
                federation.train_on_clients([(client, model)], revisit, "revisit", number)
        federation.channel.round = self.rounds + 1
        return federation.distill(
            self.agree(federation, able, models, federation.public.images), absolute_error
        )

    def agree(
        self,
        federation: Federation,
        clients: list[Client],
        models: dict[int, torch.nn.Module],
        images: torch.Tensor,
    ) -> torch.Tensor:
        """The consensus: the mean of the clients' logits (n, classes, ...) for public images."""
        return mean_answer(federation, [(c, models[c.index]) for c in clients], images)
