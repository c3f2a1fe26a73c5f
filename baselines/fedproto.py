"""FedProto: federated prototype learning across heterogeneous clients (Tan et al., AAAI 2022).

A client sends no weights. For every class it sends its prototype, its samples' mean features. The
server averages prototypes, and clients draw their features towards these averages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from fedtables.federation.client import Shard
from fedtables.federation.data import Checkpoint
from fedtables.federation.federation import Federation
from fedtables.federation.method import Method
from fedtables.federation.shared.per_class import ClassTable, OwnNetworks, mean_over_holders
from fedtables.federation.training.loops import predict
from fedtables.federation.training.plan import Batch, SteadyPenalty
from fedtables.models.catalogue import Headless
from fedtables.results.names import check_known
from fedtables.results.numbers import Count

NEVER = -1e9
"""Score of a class without a prototype, finite so that a loss is."""


def distance_to_prototypes(
    features: torch.Tensor, labels: torch.Tensor, prototypes: torch.Tensor, held: torch.Tensor
) -> torch.Tensor:
    """Mean over batch and dimensions of the squared difference between features and the prototype
    of the label: L_R of Eq. 7, per sample as in the released code.

    Features (n, d), labels (n,), prototypes (classes, d). A class without one, where `held`
    (classes,) is 0, counts 0.
    """
    apart = (features - prototypes[labels]) * held[labels][:, None]
    return apart.square().mean()


def nearest_prototype(
    prototypes: torch.Tensor, held: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights (classes, d) and biases (classes,) of a linear layer whose best class has the nearest
    prototype, the paper's prediction.

    -|f - p|^2 = 2 f p - |p|^2 - |f|^2, and the last is the same for all classes.
    """
    return 2 * prototypes, torch.where(held > 0, -prototypes.square().sum(dim=1), NEVER)


@dataclass(frozen=True)
class FedProto(Method):
    """Algorithm 1 of Tan et al.

    Networks may differ between clients where their features have one dimension. All take part in
    every round. Prototypes are of a client's samples after its training, in evaluation mode (Eq.
    3). The released code takes features from the last epoch, while weights still move. Clients keep
    their own models, and there is no central one.
    """

    title = "FedProto"
    sends = frozenset({"features", "labels"})
    quick: ClassVar[Mapping[str, Any]] = {"rounds": 2}

    rounds: Count = 100
    """Rounds of communication (released commands for MNIST; 110 for CIFAR-10)."""
    prototype_weight: float = 1.0
    """lambda, weight of the distance to prototypes (released commands; 0.1 for CIFAR-10)."""
    weights: str = "size"
    """`size` weighs clients by their samples of a class, as Eq. 6 means; that it divides by their
    number again would shrink prototypes. `uniform` is the plain mean (released code)."""
    prediction: str = "prototype"
    """`prototype` for the class of the nearest prototype (the paper), or `head` for what the
    network's own last layer says."""

    def __post_init__(self) -> None:
        check_known(self, weights=("size", "uniform"), prediction=("prototype", "head"))

    def fit(self, federation: Federation) -> Sequence[Checkpoint]:
        own, up, down = OwnNetworks(federation), federation.channel.up, federation.channel.down
        width = own.feature_width
        counts = federation.label_counts()[[client.index for client in own.able]]
        weights = counts if self.weights == "size" else counts > 0
        received = [own.table(width) for _ in own.able]
        for number in federation.rounds(self.rounds, alike=True, **own.parts(received)):
            own.train(number, [self.penalty(table) for table in received])
            sent = []
            for client in own.able:
                model, table = own.models[client.index], own.table(width)
                made = client.run(prototypes_of, federation, model, table)
                sent.append(up(client.index, "features", {"prototypes": made})["prototypes"])
            mean, held = mean_over_holders(torch.stack(sent), weights), counts.sum(dim=0) > 0
            for client, table in zip(own.able, received, strict=True):
                got = down(client.index, "features", {"prototypes": mean, "held": held})
                table.rows.copy_(got["prototypes"])
                table.counts.copy_(got["held"])
            with own.with_heads(self.heads(received)):
                own.track()
        with own.with_heads(self.heads(received)):
            return own.checkpoints()

    def penalty(self, received: ClassTable) -> SteadyPenalty:
        """lambda L_R, with the prototypes that a client has received."""

        def term(model: nn.Module, batch: Batch) -> torch.Tensor:
            assert batch.features is not None
            return self.prototype_weight * distance_to_prototypes(
                batch.features, batch.targets, received.rows, received.counts
            )

        return SteadyPenalty(term)

    def heads(self, received: Sequence[ClassTable]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """The last layers with which clients predict; none for their own."""
        tables = received if self.prediction == "prototype" else []
        return [nearest_prototype(table.rows, table.counts) for table in tables]


def prototypes_of(
    shard: Shard, federation: Federation, model: nn.Module, table: ClassTable
) -> torch.Tensor:
    """On a client: the mean of its samples' features by class, (classes, d): Eq. 3."""
    features = predict(Headless(model), shard.images, normalise=federation.normalise)
    table.add(features, shard.targets.to(features.device))
    return table.means()
