"""FedProx: federated optimization in heterogeneous networks (Li et al., MLSys 2020)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from fedtables.federation.client import Client
from fedtables.federation.training.plan import Penalty, SteadyPenalty
from fedtables.methods.fedavg import FedAvg, Round
from fedtables.privacy.plan import DP_SGD


def proximal_term(
    weights: Sequence[torch.Tensor], received: Sequence[torch.Tensor], mu: float
) -> torch.Tensor:
    """mu / 2 ||w - w_t||^2 (), the second term of Eq. 2 (h_k), over all parameters."""
    squared = [(w - w_t).square().sum() for w, w_t in zip(weights, received, strict=True)]
    return mu / 2 * torch.stack(squared).sum()


@dataclass(frozen=True)
class FedProx(FedAvg):
    """FedAvg with a proximal term in the clients' loss (Eq. 2)."""

    title = "FedProx"
    protected: ClassVar[Mapping[str, frozenset[str]]] = {DP_SGD: FedAvg.sends}

    mu: float = 0.01
    """Weight of the proximal term (the authors tune it over 0.001, 0.01, 0.1, 0.5 and 1)."""

    def penalty(self, this: Round, client: Client, worker: nn.Module) -> Penalty | None:
        received = [w.detach().clone() for w in worker.parameters()]
        return SteadyPenalty(
            lambda model, batch: proximal_term(list(model.parameters()), received, self.mu)
        )
