"""FD: federated distillation, of communication-efficient on-device machine learning (Jeong et al.,
2018).

A client sends no weights. For every class it sends what its model said on average of its samples
while it learnt from them. It gets the mean of what the other clients sent, and learns from that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import nn

from fedtables.federation.data import Checkpoint
from fedtables.federation.federation import Federation
from fedtables.federation.method import Method
from fedtables.federation.shared.per_class import ClassTable, OwnNetworks, mean_over_holders
from fedtables.federation.training.plan import Batch, SteadyPenalty
from fedtables.results.numbers import Count


def teaching_loss(
    outputs: torch.Tensor, labels: torch.Tensor, teachers: torch.Tensor
) -> torch.Tensor:
    """phi(F(w, b), F-hat_y): cross-entropy with the teacher of the label, mean over the batch
    (Jeong et al., Algorithm 1, second term of the local update).

    Logits (n, classes), labels (n,), teachers' probabilities (classes, classes). A class without
    a teacher has a row of zeros, and costs nothing.
    """
    return F.cross_entropy(outputs, teachers[labels])


def teachers_of(means: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """F-hat^(i) = sum_(j != i) F-bar^(j) / (M - 1) for every client i, (clients, classes, classes)
    (Jeong et al., Algorithm 1, global ensembling).

    Of means (clients, classes, classes) and counts (clients, classes). M counts the clients that
    hold samples of the class; the paper has all of them hold all classes. A sole holder has no
    teacher.
    """
    holders = (counts > 0).float()
    others = 1 - torch.eye(len(holders), device=holders.device)
    return torch.stack([mean_over_holders(means, holders * own[:, None]) for own in others])


@dataclass(frozen=True)
class FD(Method):
    """Algorithm 1 of Jeong et al. 2018, without their augmentation (FAug).

    Networks may differ between clients. All take part in every round. The local plan says how many
    steps a round has, where the paper has 250 of 64 samples. A mean is of all outputs of a round's
    training. Clients keep their own models, and there is no central one.
    """

    title = "FD"
    sends = frozenset({"logits", "labels"})
    quick: ClassVar[Mapping[str, Any]] = {"rounds": 2}

    rounds: Count = 16
    """Rounds of communication (Jeong et al. 2018)."""
    gamma: float = 1.0
    """Weight of the teacher's term (assumed; the paper does not say)."""

    def fit(self, federation: Federation) -> Sequence[Checkpoint]:
        own = OwnNetworks(federation)
        teachers = [own.table(own.classes) for _ in own.able]
        for number in federation.rounds(self.rounds, alike=True, **own.parts(teachers)):
            said = [own.table(own.classes) for _ in own.able]
            pairs = zip(teachers, said, strict=True)
            own.train(number, [self.penalty(teacher, heard) for teacher, heard in pairs])
            sent = self.collect(own, said)
            for client, teacher, new in zip(own.able, teachers, teachers_of(*sent), strict=True):
                received = federation.channel.down(client.index, "logits", {"teacher": new})
                teacher.rows.copy_(received["teacher"])
            own.track()
        return own.checkpoints()

    def penalty(self, teacher: ClassTable, said: ClassTable) -> SteadyPenalty:
        """The teacher's term, beside which a client adds its outputs to `said`."""

        def term(model: nn.Module, batch: Batch) -> torch.Tensor:
            said.add(batch.outputs.softmax(dim=1), batch.targets)
            return self.gamma * teaching_loss(batch.outputs, batch.targets, teacher.rows)

        return SteadyPenalty(term)

    def collect(
        self, own: OwnNetworks, said: Sequence[ClassTable]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Every client sends its mean outputs and the number of each; both by client."""
        means, counts = [], []
        for client, table in zip(own.able, said, strict=True):
            up = own.federation.channel.up
            means.append(up(client.index, "logits", {"means": table.means()})["means"])
            counts.append(up(client.index, "labels", {"counts": table.counts.long()})["counts"])
        return torch.stack(means), torch.stack(counts)
