"""FL-MRCM: federated MR image reconstruction with cross-site modelling (Guo et al., CVPR 2021).

FedAvg of U-Nets, whose latent features a client aligns with those of another: a discriminator on
the client learns to tell them apart, and the encoder to be taken for the other's. For that, clients
send the features of their private images.

The released code trains for one target client at a time, to whose features all others are aligned,
with RMSprop. Here one model is for all: in every round each client is aligned with another one, in
turn, by the features that this one computed after the round before; so the first round has none.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import nn

from fedtables.federation.client import Client, Shard
from fedtables.federation.federation import Federation
from fedtables.federation.shared.averaging import average_states
from fedtables.federation.training.loops import predict
from fedtables.federation.training.plan import Batch, Penalty
from fedtables.methods.fedavg import FedAvg, Round, State
from fedtables.models.cut import Latent, flat_pooled, when_passed
from fedtables.results.numbers import Count, Positive, SomeShare

POOLED = 2
"""Sides of the pooled features."""
OWN, OTHER = 0, 1
"""Domains, as the discriminator tells them: the codes (1, 0) and (0, 1)."""


def coded_loss(logits: torch.Tensor, domain: int) -> torch.Tensor:
    """Binary cross-entropy () of logits (n, 2) with the code of a domain (released code)."""
    code = torch.zeros_like(logits)
    code[:, domain] = 1
    return F.binary_cross_entropy_with_logits(logits, code)


def domain_loss(own: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """L_adv of the discriminator: the mean of both domains' losses, from logits (n, 2) of the
    client's own features and (m, 2) of the other's.
    """
    return (coded_loss(own, OWN) + coded_loss(other, OTHER)) / 2


def alignment_loss(own: torch.Tensor) -> torch.Tensor:
    """L_adv of the encoder: its own half of the mean of both domains' losses with exchanged codes,
    from logits (n, 2) of the client's own features.

    In the released code the encoder learns through the other's half too, since one process holds
    the images of both. Here the other's features are numbers that a client has received, and that
    half has no gradient.
    """
    return coded_loss(own, OTHER) / 2


class Aligner(nn.Module):
    """What a client keeps from round to round: its discriminator, and the features (n, features) of
    its images that it has sent last.
    """

    def __init__(self, samples: int, features: int, hidden: int):
        super().__init__()
        self.discriminator = nn.Sequential(
            nn.Linear(features, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, 2), nn.LeakyReLU(0.2)
        )  # the last one too (released code)
        self.sent: torch.Tensor
        self.register_buffer("sent", torch.zeros(samples, features))


@dataclass(frozen=True)
class FLMRCM(FedAvg):
    """FedAvg with cross-site modelling (Algorithm 1 of Guo et al.)."""

    title = "FL-MRCM"
    sends = frozenset({"parameters", "features"})
    reconstructs = True
    quick: ClassVar[Mapping[str, Any]] = {"rounds": 3, "hidden": 16}

    rounds: Count = 50
    """Rounds of communication (released code)."""
    participation: SomeShare = 1.0
    """All clients in every round (released code)."""
    adversarial: float = 1.0
    """Weight of the encoder's loss against the discriminator (released code)."""
    hidden: Count = 256
    """Units of the discriminator's layer (released code)."""
    discriminator_lr: Positive = 1e-3
    """Of RMSprop for the discriminator (released code: ten times that of the network)."""

    def server_state(self, federation: Federation, model: nn.Module) -> dict[str, Any]:
        """Every client's aligner with its optimiser, which stay on the clients."""
        image = torch.zeros(1, *federation.networks.image_shape, device=federation.networks.device)
        with torch.no_grad():
            features = Latent(model, POOLED)(image).shape[1]
        kept: dict[str, Any] = {}
        for client in federation.clients:
            build = functools.partial(Aligner, client.size, features, self.hidden)
            aligner = federation.networks.new_module(build, "aligner")
            kept[f"aligner {client.index}"] = aligner
            kept[f"optimizer {client.index}"] = torch.optim.RMSprop(
                aligner.discriminator.parameters(), self.discriminator_lr
            )
        return kept

    def penalty(self, this: Round, client: Client, worker: nn.Module) -> Penalty | None:
        """L_adv of the encoder; on every batch the discriminator takes its step before."""
        federation, server = this.federation, this.server
        partner = self.partner(federation, client, this.number)
        if partner is None:
            return None
        shared = {"features": server[f"aligner {partner.index}"].sent}
        others = federation.channel.down(client.index, "features", shared)["features"]
        aligner, optimizer = server[f"aligner {client.index}"], server[f"optimizer {client.index}"]
        stream = federation.streams.shuffling("cross-site", client.index, this.number)

        def align(model: nn.Module, batch: Batch) -> torch.Tensor:
            own = flat_pooled(server["latents"][worker], POOLED).float()  # under autocast bf16
            other = others[stream.choose(len(others), len(own))]
            judge = aligner.discriminator
            optimizer.zero_grad()
            domain_loss(judge(own.detach()), judge(other)).backward()
            optimizer.step()
            return self.adversarial * alignment_loss(judge(own))

        return align

    def partner(self, federation: Federation, client: Client, number: int) -> Client | None:
        """The client with whose features those of `client` are aligned in a round: of all others
        that have sent any, one after another; None in the first round.
        """
        sent = {
            other.index
            for before in range(1, number)
            for other in federation.streams.participants(before, self.participation)
        }
        # From the client on, in a circle: where all have sent, each is one other's partner.
        clients, own = federation.clients, client.index
        circle = [(own + step) % len(clients) for step in range(1, len(clients))]
        others = [clients[index] for index in circle if index in sent]
        return others[number % len(others)] if others else None

    def aggregate(self, this: Round, states: Iterator[State]) -> None:
        """The plain mean of all networks (released code)."""
        this.model.load_state_dict(average_states(states, [1] * len(this.clients)))

    def client_updates(self, this: Round, workers: Sequence[nn.Module]) -> Iterator[State]:
        """As FedAvg's; each client also sends the features of its images under what it has
        trained, which others get in later rounds.
        """
        federation, server = this.federation, this.server

        def on_client(shard: Shard, encoder: nn.Module) -> torch.Tensor:
            return predict(encoder, shard.images, normalise=federation.normalise)

        latents: dict[nn.Module, torch.Tensor] = {}
        server["latents"] = latents  # of the batch that a worker has seen last
        handles = [when_passed(w, functools.partial(latents.__setitem__, w)) for w in workers]
        sent = {}
        states = super().client_updates(this, workers)
        for position, (client, state) in enumerate(zip(this.clients, states, strict=True)):
            encoder = Latent(workers[position % len(workers)], POOLED)
            features = client.run(on_client, encoder)
            payload = {"features": features}
            sent[client.index] = federation.channel.up(client.index, "features", payload)
            yield state
        for index, kept in sent.items():
            server[f"aligner {index}"].sent.copy_(kept["features"])
        for handle in handles:
            handle.remove()
