"""FedDyn: federated learning based on dynamic regularization (Acar et al., ICLR 2021).

A penalty that changes with each round makes the clients' minima those of the sum of their losses.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from fedtables.federation.client import Client
from fedtables.federation.federation import Federation
from fedtables.federation.shared.averaging import average_states
from fedtables.federation.shared.kept import linear_term, moved, zeros_like
from fedtables.federation.training.plan import Penalty, SteadyPenalty
from fedtables.methods.fedavg import FedAvg, Round, State
from fedtables.methods.fedprox import proximal_term
from fedtables.privacy.plan import DP_SGD
from fedtables.results.numbers import Positive


@dataclass(frozen=True)
class FedDyn(FedAvg):
    """Algorithm 1. g_k at each client and h at the server start at 0.

    Clients count alike, whatever their sizes, as in the paper. BatchNorm's buffers take the plain
    mean. The model is the server's; the authors report the mean of all clients' models.
    """

    title = "FedDyn"
    protected: ClassVar[Mapping[str, frozenset[str]]] = {DP_SGD: FedAvg.sends}

    alpha: Positive = 0.01
    """Weight of the dynamic regulariser (released example; the paper tunes it from 0.001 to
    0.1)."""

    def server_state(self, federation: Federation, model: nn.Module) -> dict[str, Any]:
        return {"h": zeros_like(model)}

    def client_state(
        self, federation: Federation, client: Client, model: nn.Module
    ) -> dict[str, Any]:
        return {"gradient": zeros_like(model)}

    def penalty(self, this: Round, client: Client, worker: nn.Module) -> Penalty | None:
        """-<g_k, w> + alpha / 2 ||w - w_t||^2 (Eq. 1)."""
        gradient = this.kept[client.index]["gradient"]
        received = [w.detach().clone() for w in worker.parameters()]
        return SteadyPenalty(
            lambda model, batch: (
                proximal_term(list(model.parameters()), received, self.alpha)
                - linear_term(model, gradient)
            )
        )

    def payload(self, this: Round, client: Client, worker: nn.Module, received: State) -> State:
        """The local model; the client keeps g_k <- g_k - alpha (w_k - w_t)."""
        for name, move in moved(worker, received).items():
            this.kept[client.index]["gradient"][name].sub_(move, alpha=self.alpha)
        return worker.state_dict()

    def aggregate(self, this: Round, states: Iterator[State]) -> None:
        """h <- h - alpha / N sum_S (w_k - w_t); w <- mean_S w_k - h / alpha."""
        mean = average_states(states, [1.0] * len(this.clients))
        all_clients = sum(client.size > 0 for client in this.federation.clients)
        share = self.alpha * len(this.clients) / all_clients
        with torch.no_grad():
            for name, weights in this.model.named_parameters():
                h = this.server["h"][name].sub_(mean[name] - weights, alpha=share)
                weights.copy_(mean[name] - h / self.alpha)
            for name, buffer in this.model.named_buffers():
                buffer.copy_(mean[name])
