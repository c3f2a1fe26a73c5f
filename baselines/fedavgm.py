"""FedAvgM: FedAvg with server momentum (Hsu, Qi and Brown 2019)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from fedtables.federation.federation import Federation
from fedtables.federation.shared.averaging import average_states
from fedtables.methods.fedavg import FedAvg, Round, State
from fedtables.privacy.plan import DP_SGD
from fedtables.results.numbers import Positive, Share


@dataclass(frozen=True)
class FedAvgM(FedAvg):
    """v <- beta v + dw; w <- w - lr v, with dw the difference between the global model and the
    clients' average.

    Momentum acts on parameters; BatchNorm's buffers take the plain average.
    """

    title = "FedAvgM"
    protected: ClassVar[Mapping[str, frozenset[str]]] = {DP_SGD: FedAvg.sends}

    server_momentum: Share = 0.9
    """beta (Hsu et al. 2019, section 4.3; what FedDF and FedIOD used is unknown)."""
    server_lr: Positive = 1.0
    """Step size of the server (Hsu et al. 2019)."""

    def server_state(self, federation: Federation, model: nn.Module) -> dict[str, Any]:
        return {
            "optimizer": torch.optim.SGD(
                model.parameters(), lr=self.server_lr, momentum=self.server_momentum
            )
        }

    def aggregate(self, this: Round, states: Iterator[State]) -> None:
        average = average_states(states, [client.size for client in this.clients])
        for name, weights in this.model.named_parameters():
            weights.grad = weights.detach() - average[name]
        for name, buffer in this.model.named_buffers():
            buffer.copy_(average[name])
        this.server["optimizer"].step()
