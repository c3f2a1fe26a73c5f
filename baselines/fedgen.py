"""FedGEN: data-free knowledge distillation for heterogeneous federated learning (Zhu, Hong and
Zhou, ICML 2021).

FedAvg, in which the server also learns a generator of features: given a label it makes what the
clients' heads take for that class. Clients get it with the global model and train their heads on
its features as well.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import nn

from fedtables.federation.client import Client
from fedtables.federation.data import state_of
from fedtables.federation.federation import Federation
from fedtables.federation.samples import see
from fedtables.federation.shared.per_class import shares_of_holders
from fedtables.federation.training.plan import Batch, Penalty, SteadyPenalty
from fedtables.methods.fedavg import FedAvg, Round, State
from fedtables.models.catalogue import find_head
from fedtables.results.numbers import Count, Positive


class FeatureGenerator(nn.Module):
    """Noise (n, noise) and labels (n,) to features (n, features) of a network's last layer."""

    def __init__(self, noise: int, classes: int, hidden: int, features: int):
        super().__init__()
        self.noise, self.classes = noise, classes
        self.layers = nn.Sequential(
            nn.Linear(noise + classes, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, features),
            nn.ReLU(),
        )

    def forward(self, noise: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        classes = torch.arange(self.classes, device=labels.device)
        of_class = labels[:, None] == classes  # F.one_hot would look at the labels, and wait
        features: torch.Tensor = self.layers(torch.cat([noise, of_class.to(noise)], dim=1))
        return features


def label_weighted_loss(
    logits: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """sum_k alpha_k^y CE(h_k(G(z, y)), y), mean over the batch (Eq. 4 of FedGEN, with the released
    code's label weights).

    Head outputs (clients, n, classes), labels (n,), weights (clients, classes).
    """
    per_client = torch.stack(
        [F.cross_entropy(client_logits, labels, reduction="none") for client_logits in logits]
    )
    return (weights[:, labels] * per_client).sum(dim=0).mean()


def diversity_loss(noise: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
    """exp(-mean_ij |z_i - z_j|^2 |G_i - G_j|) (released code): low when different noise gives
    different features.

    Distances are means over dimensions: of squared differences for the noise, of absolute ones for
    the features.
    """
    apart = (noise[:, None] - noise).square().mean(dim=2) * (
        features[:, None] - features
    ).abs().mean(dim=2)
    return (-apart.mean()).exp()


@dataclass(frozen=True)
class FedGEN(FedAvg):
    """FedAvg with a server-side generator over label-conditioned features.

    Noise is normal, as in the paper (the released code draws it uniformly), and labels are drawn
    from all classes.
    """

    title = "FedGEN"
    sends = frozenset({"parameters", "labels"})
    quick: ClassVar[Mapping[str, Any]] = {**FedAvg.quick, "generator_steps": 10}

    noise: Count = 64
    """Size of the generator's noise (released configuration for CIFAR)."""
    hidden: Count = 512
    """Width of the generator's hidden layer (released configuration for CIFAR)."""
    generator_steps: Count = 50
    """Steps of the generator in a round (released code: 5 x 10)."""
    generator_batch_size: Count = 32
    """Labels in such a step (released code)."""
    generator_lr: Positive = 3e-4
    """Learning rate of Adam for the generator (released code)."""
    generator_weight_decay: float = 1e-2
    """Weight decay of the generator (released code)."""
    diversity: float = 1.0
    """Weight of the diversity loss (released code)."""
    generative_alpha: float = 10.0
    """Weight of a client's loss on features of labels drawn from all classes (released code)."""
    generative_beta: float = 10.0
    """Weight of the divergence between a client's outputs and its head on generated features of the
    same labels."""
    decay: float = 0.98
    """Factor of both weights from round to round (released code)."""

    def server_state(self, federation: Federation, model: nn.Module) -> dict[str, Any]:
        _, head = find_head(model)
        generator = federation.networks.new_module(
            lambda: FeatureGenerator(
                self.noise, federation.task.outputs, self.hidden, head.in_features
            ),
            "feature generator",
        ).eval()
        optimizer = torch.optim.Adam(
            generator.parameters(), self.generator_lr, weight_decay=self.generator_weight_decay
        )
        return {"generator": generator, "optimizer": optimizer, "counts": federation.label_counts()}

    def penalty(self, this: Round, client: Client, worker: nn.Module) -> Penalty | None:
        """alpha CE(h(G(z, y')), y') + beta KL(h(G(z, y)) || f(x)): y' drawn, y the batch's."""
        if this.number == 1:  # the generator has learnt nothing yet
            return None
        federation, generator = this.federation, this.server["generator"]
        received = federation.channel.down(client.index, "parameters", state_of(generator))
        stream = federation.streams.shuffling("fedgen client", client.index, this.number)
        factor = self.decay ** (this.number - 1)

        def term(model: nn.Module, batch: Batch) -> torch.Tensor:
            _, head = find_head(model)

            def through_head(labels: torch.Tensor) -> torch.Tensor:
                noise = stream.normal(len(labels), self.noise)
                with torch.no_grad():
                    features = torch.func.functional_call(generator, received, (noise, labels))
                logits: torch.Tensor = head(features)
                return logits

            drawn = stream.choose(generator.classes, len(batch.targets))
            same = F.kl_div(
                batch.outputs.log_softmax(dim=1),
                through_head(batch.targets).detach().softmax(dim=1),
                reduction="batchmean",
            )
            return factor * (
                self.generative_alpha * F.cross_entropy(through_head(drawn), drawn)
                + self.generative_beta * same
            )

        return SteadyPenalty(term, (stream,))

    def aggregate(self, this: Round, states: Iterator[State]) -> None:
        name, _ = find_head(this.model)
        heads: list[tuple[torch.Tensor, torch.Tensor]] = []  # all that the generator needs

        def received() -> Iterator[State]:
            for state in states:
                heads.append((state[f"{name}.weight"], state[f"{name}.bias"]))
                yield state

        super().aggregate(this, received())
        self.train_generator(this, heads)

    def train_generator(
        self, this: Round, heads: Sequence[tuple[torch.Tensor, torch.Tensor]]
    ) -> None:
        """Fit the generator to this round's heads, each label by who holds samples of it."""
        generator, optimizer = this.server["generator"], this.server["optimizer"]
        counts = this.server["counts"][[client.index for client in this.clients]]
        weights = shares_of_holders(counts)
        stream = this.federation.streams.shuffling("fedgen server", this.number)
        generator.train()
        for _ in this.federation.steps(self.generator_steps, name="generator"):
            labels = stream.choose(generator.classes, self.generator_batch_size)
            see(len(labels))
            noise = stream.normal(len(labels), self.noise)
            features = generator(noise, labels)
            logits = torch.stack([F.linear(features, weight, bias) for weight, bias in heads])
            loss = label_weighted_loss(logits, labels, weights) + self.diversity * diversity_loss(
                noise, features
            )
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        generator.eval()
