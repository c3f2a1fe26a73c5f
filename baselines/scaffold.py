"""SCAFFOLD: stochastic controlled averaging for federated learning (Karimireddy et al., ICML
2020).

Clients with unlike data drift apart. Each client corrects its gradients by the difference of two
control variates: c, the server's estimate of the gradient of all, and c_i, that of its own.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from fedtables.federation.client import Client
from fedtables.federation.federation import Federation
from fedtables.federation.shared.averaging import average_states
from fedtables.federation.shared.kept import (
    gradient_at,
    linear_term,
    local_steps,
    moved,
    summed_rate,
    zeros_like,
)
from fedtables.federation.training.plan import Penalty, SteadyPenalty
from fedtables.methods.fedavg import FedAvg, Round, State
from fedtables.privacy.plan import DP_SGD
from fedtables.results.numbers import Positive

CONTROL = "control "
"""Before a parameter's name in a message: the change of its control variate."""


def new_control(move: State, correction: State, way: float) -> State:
    """c_i+ = c_i - c + (x - y) / (K eta) (Eq. 4, option II), by the parameter's name.

    `move` is y - x, `correction` is c - c_i, and `way` is K eta.
    """
    return {name: -change / way - correction[name] for name, change in move.items()}


@dataclass(frozen=True)
class SCAFFOLD(FedAvg):
    """Algorithm 1; all control variates start at 0.

    Where clients train by SGD, c_i comes from their steps (option II). For another optimiser these
    are no gradients: there c_i is the gradient at the received model (option I), which costs a
    further pass. Clients count alike, whatever their sizes, as in the paper. BatchNorm's buffers
    have no control variates; the server takes their mean.
    """

    title = "SCAFFOLD"
    protected: ClassVar[Mapping[str, frozenset[str]]] = {DP_SGD: FedAvg.sends}
    quick: ClassVar[Mapping[str, Any]] = {
        **FedAvg.quick,
        "local.optimizer": "sgd",
        "local.lr": 0.1,
    }

    server_lr: Positive = 1.0
    """eta_g, the step of the server (paper, section 7)."""

    def server_state(self, federation: Federation, model: nn.Module) -> dict[str, Any]:
        if federation.privacy.mechanism and federation.local.optimizer != "sgd":
            raise ValueError("private SCAFFOLD needs the steps of SGD; set local.optimizer=sgd")
        return {"control": zeros_like(model)}

    def client_state(
        self, federation: Federation, client: Client, model: nn.Module
    ) -> dict[str, Any]:
        return {"control": zeros_like(model)}

    def penalty(self, this: Round, client: Client, worker: nn.Module) -> Penalty | None:
        """<c - c_i, y>: it adds c - c_i to every gradient (Eq. 3)."""
        federation, own, plan = this.federation, this.kept[client.index], this.federation.local
        c = federation.channel.down(client.index, "parameters", this.server["control"])
        own["correction"] = {name: c[name] - mine for name, mine in own["control"].items()}
        if plan.optimizer == "sgd":
            own["way"] = summed_rate(plan, *local_steps(federation, client, plan))
        else:
            own["new"] = client.run(gradient_at, federation, client, worker)
        correction = own["correction"]
        return SteadyPenalty(lambda model, batch: linear_term(model, correction))

    def payload(self, this: Round, client: Client, worker: nn.Module, received: State) -> State:
        """The changes of y and of c_i, and the buffers as they are."""
        own, move = this.kept[client.index], moved(worker, received)
        if this.federation.local.optimizer == "sgd":
            own["new"] = new_control(move, own["correction"], own["way"])
        changes = {CONTROL + name: c - own["control"][name] for name, c in own["new"].items()}
        own["control"].load_state_dict(own["new"])
        return {**dict(worker.named_buffers()), **move, **changes}

    def aggregate(self, this: Round, states: Iterator[State]) -> None:
        """x <- x + eta_g mean_S dy; c <- c + sum_S dc_i / N (Eq. 5)."""
        mean = average_states(states, [1.0] * len(this.clients))
        all_clients = sum(client.size > 0 for client in this.federation.clients)
        share = len(this.clients) / all_clients
        with torch.no_grad():
            for name, weights in this.model.named_parameters():
                weights.add_(mean[name], alpha=self.server_lr)
                this.server["control"][name].add_(mean[CONTROL + name], alpha=share)
            for name, buffer in this.model.named_buffers():
                buffer.copy_(mean[name])
