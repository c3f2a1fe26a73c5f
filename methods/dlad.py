"""DLAD: decentralized learning via adaptive distillation (Ma, Yonetani and Iqbal, ICPR 2020).

Every client trains its own model M_i and, started from it, a binary classifier C_i that tells its
samples from the public ones. It submits both, once. The server mixes the clients' probabilities for
each public image, weighted by how much at home the image looks to each client, and trains a global
model to imitate the mixture.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import torch
import torch.nn.functional as F

from fedtables.federation.client import Client, Shard
from fedtables.federation.data import Checkpoint, TrainingSet
from fedtables.federation.federation import Federation
from fedtables.federation.inside.trainer import LocalTraining
from fedtables.federation.method import Method
from fedtables.federation.training.plan import Training, TrainingPlan
from fedtables.results.numbers import Count, Positive


def confidence_weights(confidence: torch.Tensor, temperature: float) -> torch.Tensor:
    """Eq. 4: softmax over clients of C_i(x) / T, for confidences (clients, n) in [0, 1]; columns
    sum to one.

    The equation is printed with T dividing the classifier's input; dividing its output is what a
    temperature means.
    """
    return (confidence / temperature).softmax(dim=0)


def mixture(weights: torch.Tensor, probabilities: torch.Tensor) -> torch.Tensor:
    """Eq. 2's target, sum_i w_i(x) M_i(x): weights (clients, n), M (clients, n, classes)."""
    return torch.einsum("kn,knc->nc", weights, probabilities)


def teacher_probabilities(federation: Federation, teachers: Sequence[Checkpoint]) -> torch.Tensor:
    """M_i(x) for the public images, (clients, n, classes)."""
    return torch.stack(
        [federation.task.probabilities(federation.public_outputs(t)) for t in teachers]
    )


def binary_cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Loss per sample, (n,), of the classifiers' logits (n, 1) against targets (n, 1)."""
    return F.binary_cross_entropy_with_logits(logits, targets, reduction="none").squeeze(1)


@dataclass(frozen=True)
class DLAD(Method):
    """Adaptive distillation, Eq. 2 to 4."""

    title = "Global (DLAD)"
    sends = frozenset({"parameters"})

    temperature: Positive = 0.05
    """T of Eq. 4 (paper, V-B)."""
    classifier_epochs: Count = 20
    """Epochs of each client's binary classifier (paper, V-B)."""
    client_weight: float = 1.5
    """Sample weight of the client's own images when its classifier is trained (paper, V-B)."""

    def fit(self, federation: Federation) -> Checkpoint:
        local = federation.local_models()
        plan = replace(federation.local, epochs=self.classifier_epochs)
        classifiers = federation.stages.client_models(
            "client-classifier",
            lambda c: self.classifier_training(federation, c, local[c.index], plan),
            lambda c: (
                local[c.index].lineage,
                federation.public.digest,
                asdict(plan),
                self.client_weight,
            ),
            outputs=1,
            code=__name__,
        )
        pairs = list(zip(federation.clients, local, classifiers, strict=True))
        teachers = [federation.upload(client, model) for client, model, _ in pairs]
        judges = [federation.upload(client, classifier) for client, _, classifier in pairs]
        confidence = torch.stack(
            [federation.public_outputs(c).squeeze(1).sigmoid() for c in judges]
        )
        weights = confidence_weights(confidence, self.temperature)
        return federation.distill(mixture(weights, teacher_probabilities(federation, teachers)))

    def classifier_training(
        self, federation: Federation, client: Client, model: Checkpoint, plan: TrainingPlan
    ) -> LocalTraining:
        """C_i of Eq. 3 from the client's own model: to tell its samples X_i (label 1, sample weight
        1.5) from the public ones X_dist (label 0).
        """
        index, public = client.index, federation.public.images
        network = federation.networks.module(model)

        def memberships(shard: Shard) -> TrainingSet:
            images = torch.cat([shard.images, public])
            membership = torch.zeros(len(images), 1, device=images.device)
            membership[: len(shard)] = 1
            weights = 1 + (self.client_weight - 1) * membership.squeeze(1)
            return TrainingSet(images, membership, weights)

        training = Training(
            binary_cross_entropy,
            plan,
            ("classifier", index),
            f"classifier {index + 1}/{len(federation.clients)}",
        )
        head = federation.networks.replace_head(network, 1, "classifier", index)
        return LocalTraining(client, head, training, memberships)
