"""MOON: model-contrastive federated learning (Li, He and Song, CVPR 2021).

Each client pulls the representations of its model towards those of the global model, and away from
those of its own model of its last round.
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
from fedtables.methods.fedavg import FedAvg, Round, State
from fedtables.models.catalogue import PROJECTION, features
from fedtables.results.numbers import Positive


def model_contrastive_loss(
    own: torch.Tensor, of_global: torch.Tensor, previous: torch.Tensor, temperature: float
) -> torch.Tensor:
    """-log(e^(s(z, z_glob) / tau) / (e^(s(z, z_glob) / tau) + e^(s(z, z_prev) / tau))), mean over
    the batch (): Eq. 3. s is the cosine; representations (n, d).
    """
    near, far = (F.cosine_similarity(own, other, dim=1) for other in (of_global, previous))
    return F.softplus((far - near) / temperature).mean()


@dataclass(frozen=True)
class MOON(FedAvg):
    """Algorithm 1. A client that has not taken part yet has the initial model as its last one.

    The released code has no last model in its first round, and keeps a pool of them.
    """

    title = "MOON"

    mu: float = 1.0
    """Weight of the contrastive term (paper: 5 for CIFAR-10, 1 for CIFAR-100 and Tiny-ImageNet)."""
    temperature: Positive = 0.5
    """tau (paper, section 4.1)."""
    projection: bool = True
    """Whether the network gets a projection head, whose output is the representation (paper);
    without, it is what the network's last layer gets."""

    def network(self, federation: Federation) -> str:
        check_single_label(federation.task)
        return super().network(federation) + (PROJECTION if self.projection else "")

    def client_state(
        self, federation: Federation, client: Client, model: nn.Module
    ) -> dict[str, Any]:
        return {"previous": frozen_copy(model)}

    def penalty(self, this: Round, client: Client, worker: nn.Module) -> Penalty | None:
        received = frozen_copy(worker)
        previous = this.kept[client.index]["previous"]

        def term(model: nn.Module, batch: Batch) -> torch.Tensor:
            assert batch.features is not None
            of_global, own_last = (features(old, batch.inputs) for old in (received, previous))
            return self.mu * model_contrastive_loss(
                batch.features, of_global, own_last, self.temperature
            )

        return SteadyPenalty(term, passes=2)

    def payload(self, this: Round, client: Client, worker: nn.Module, received: State) -> State:
        this.kept[client.index]["previous"].load_state_dict(worker.state_dict())
        return worker.state_dict()
