"""FedAvg: communication-efficient learning of deep networks from decentralized data (McMahan et
al., AISTATS 2017).

In every round the server sends the global model to some of the clients; each trains it on its own
samples and sends it back; the server averages, weighted by the clients' sizes. FedProx, FedAvgM,
FedGEN and FedDF change one step each.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import nn

from fedtables.federation.channel import Packed
from fedtables.federation.client import Client
from fedtables.federation.data import Checkpoint, state_of
from fedtables.federation.federation import Federation
from fedtables.federation.method import Method
from fedtables.federation.shared.averaging import average_states
from fedtables.federation.training.plan import Penalty
from fedtables.privacy.plan import DP_SGD
from fedtables.results.numbers import Count, SomeShare

State = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Round:
    """What the steps of a round are given."""

    federation: Federation
    number: int
    clients: Sequence[Client]
    """Those that take part."""
    model: nn.Module
    """The global model, which `FedAvg.aggregate` changes."""
    server: dict[str, Any]
    """What `FedAvg.server_state` has returned."""
    kept: Mapping[int, dict[str, Any]] = field(default_factory=dict)
    """What `FedAvg.client_state` has returned, by the client's index. Only what runs on that client
    may use it."""


@dataclass(frozen=True)
class FedAvg(Method):
    """Algorithm 1 of McMahan et al. 2017; local epochs, batch size and learning rate are those of
    the local plan.
    """

    title = "FedAvg"
    sends = frozenset({"parameters"})
    protected: ClassVar[Mapping[str, frozenset[str]]] = {DP_SGD: sends}
    quick: ClassVar[Mapping[str, Any]] = {"rounds": 3, "participation": 0.6}

    rounds: Count = 100
    """Rounds of communication (FedDF's released recipe, Lin et al. 2020)."""
    participation: SomeShare = 0.4
    """C, the share of clients in a round (FedDF's text; its released commands: 0.1)."""

    def fit(self, federation: Federation) -> Checkpoint:
        network = self.network(federation)
        model = federation.networks.initial(network)
        workers = [
            federation.networks.initial(network)
            for _ in range(min(federation.networks.execution.stacked, len(federation.clients)))
        ]
        server = self.server_state(federation, model)
        kept = {c.index: self.client_state(federation, c, model) for c in federation.clients}
        held = {f"client {k} {name}": part for k, own in kept.items() for name, part in own.items()}
        stateful = {n: p for n, p in {**server, **held}.items() if hasattr(p, "state_dict")}
        drawn = Counter(
            c.index
            for n in range(self.rounds)
            for c in federation.streams.participants(n + 1, self.participation)
        )
        federation.privacy.reserve((federation.local, drawn))
        for number in federation.rounds(self.rounds, model=model, **stateful):
            drawn_now = federation.streams.participants(number, self.participation)
            able = [c for c in drawn_now if federation.privacy.can_train(c, federation.local)]
            if able:  # else their privacy budgets are spent
                this = Round(federation, number, able, model, server, kept)
                self.aggregate(this, self.client_updates(this, workers))
            federation.evaluation.track(model)
        return federation.networks.checkpoint(model, network)

    def client_updates(self, this: Round, workers: Sequence[nn.Module]) -> Iterator[State]:
        """ClientUpdate of Algorithm 1: the global model down, local epochs from it, the local model
        up; client by client.

        `workers` are the networks that clients train: one, or as many as are trained together.
        """
        federation, sent = this.federation, Packed(state_of(this.model))
        for start in range(0, len(this.clients), len(workers)):
            group = list(zip(this.clients[start:], workers, strict=False))
            for client, worker in group:
                worker.load_state_dict(federation.channel.down(client.index, "parameters", sent))
            penalties = [self.penalty(this, client, worker) for client, worker in group]
            federation.train_on_clients(
                group, federation.local, "round", this.number, penalties=penalties
            )
            for client, worker in group:
                payload = self.payload(this, client, worker, sent)
                yield federation.channel.up(client.index, "parameters", payload)

    def network(self, federation: Federation) -> str:
        """The name of the network that server and clients use."""
        return federation.networks.shared()

    def server_state(self, federation: Federation, model: nn.Module) -> dict[str, Any]:
        """What the server has beside the model; what has a state_dict is restored."""
        return {}

    def client_state(
        self, federation: Federation, client: Client, model: nn.Module
    ) -> dict[str, Any]:
        """What a client keeps from round to round; what has a state_dict is restored. It is no
        message and never leaves the client.
        """
        return {}

    def penalty(self, this: Round, client: Client, worker: nn.Module) -> Penalty | None:
        """A term that a client adds to its loss; `worker` has the weights just received."""
        return None

    def payload(self, this: Round, client: Client, worker: nn.Module, received: State) -> State:
        """What a client sends of `worker`, trained from the global model `received`."""
        return worker.state_dict()

    def aggregate(self, this: Round, states: Iterator[State]) -> None:
        """w <- sum_k n_k / n w_k, BatchNorm's buffers included; in place in the global model.

        `states`, the payloads, come as clients finish, in their order, so that the average never
        holds more than one of them.
        """
        sizes = [client.size for client in this.clients]
        this.model.load_state_dict(average_states(states, sizes))
