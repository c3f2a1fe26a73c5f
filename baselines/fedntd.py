"""FedNTD: preservation of the global knowledge by not-true distillation (Lee et al., NeurIPS 2022).

Clients forget what the global model knows of classes that they lack. So each also distils from the
received model, by what it says of all classes but the true one.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from fedtables.federation.client import Client
from fedtables.federation.federation import Federation
from fedtables.federation.shared.kept import frozen_copy
from fedtables.federation.tasks.base import check_single_label
from fedtables.federation.training.plan import Batch, Penalty, SteadyPenalty
from fedtables.methods.fedavg import FedAvg, Round
from fedtables.results.numbers import Positive


def not_true(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Logits (n, classes) without each sample's own label (n,): (n, classes - 1)."""
    classes = logits.shape[1]
    others = torch.arange(1, classes, device=labels.device)
    return logits.gather(1, (labels[:, None] + others) % classes)


def not_true_distillation(
    outputs: torch.Tensor, teacher: torch.Tensor, labels: torch.Tensor, temperature: float
) -> torch.Tensor:
    """tau^2 KL(softmax(teacher / tau) || softmax(outputs / tau)) over the classes that are not the
    label, mean over the batch (): Eq. 4 and 5.

    Logits (n, classes) of the local and of the received model, labels (n,).
    """
    student = (not_true(outputs, labels) / temperature).log_softmax(dim=1)
    wanted = (not_true(teacher, labels) / temperature).log_softmax(dim=1)
    divergence = F.kl_div(student, wanted, reduction="batchmean", log_target=True)
    return temperature**2 * divergence


@dataclass(frozen=True)
class FedNTD(FedAvg):
    """FedAvg with not-true distillation from the received model, which is frozen and in evaluation
    mode (Eq. 3).

    The released code leaves its first teacher in training mode.
    """

    title = "FedNTD"

    beta: float = 1.0
    """Weight of the distillation (released configuration)."""
    temperature: Positive = 1.0
    """tau (released configuration; the class's own default is 3)."""

    def server_state(self, federation: Federation, model: nn.Module) -> dict[str, Any]:
        check_single_label(federation.task)
        return {}

    def penalty(self, this: Round, client: Client, worker: nn.Module) -> Penalty | None:
        received = frozen_copy(worker)

        def term(model: nn.Module, batch: Batch) -> torch.Tensor:
            teacher = received(batch.inputs)
            return self.beta * not_true_distillation(
                batch.outputs, teacher, batch.targets, self.temperature
            )

        return SteadyPenalty(term, passes=1)
