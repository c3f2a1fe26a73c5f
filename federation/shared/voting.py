"""PATE between clients and server: noisy votes in place of outputs (Papernot et al. 2017 and 2018).

Every client adds its share of the noise to its own votes, and the server learns their sum alone:
that takes secure aggregation, which is assumed here and not simulated. What crosses is counted all
the same.
"""

from collections.abc import Callable, Sequence
from functools import partial

import torch

from fedtables.federation.client import Client
from fedtables.federation.federation import Federation
from fedtables.federation.inside.privacy import Protection
from fedtables.privacy.accounting import calibrate, epsilon
from fedtables.privacy.pate import data_dependent_release, histogram, release, vote_share
from fedtables.privacy.releases import Steps


def vote(
    federation: Federation,
    clients: Sequence[Client],
    outputs_of: Callable[[Client], torch.Tensor],
    queries: int,
    *,
    images: torch.Tensor | None = None,
) -> torch.Tensor:
    """The class (queries,) with the most votes for each of `queries` images, after noise that uses
    up the budget.

    `outputs_of(client)` are the logits (queries, classes) of a client's model for the images; it is
    called on the client. The noise is the smallest with which every client stays within its budget,
    beside what it has released before. `images` are sent down first where the clients do not have
    them.
    """
    protection = federation.privacy.protection
    assert protection is not None
    if not clients:
        raise ValueError("no client holds samples, so nobody votes")
    noise = smallest_vote_noise(protection, clients, queries)
    shares, private = [], []
    for client in clients:
        if images is not None:
            federation.channel.down(client.index, "images", {"images": images})
        federation.privacy.spend(client, release(noise, queries, protection.plan.votes))
        outputs = client.run(lambda shard, voter: outputs_of(voter), client)
        generator = federation.privacy.noise("votes", client.index).generator
        share = outputs  # while planning, which has no votes but the same shape
        if generator is not None:
            share = vote_share(outputs, noise, len(clients), protection.plan.votes, generator)
        shares.append(federation.channel.up(client.index, "votes", {"votes": share})["votes"])
        private.append(outputs)
    if federation.networks.device.type != "meta":
        data_dependent = data_dependent_release(
            histogram(torch.stack(private)), noise, protection.plan.votes
        )
        protection.details["votes"] = {
            "clients": len(clients),
            "queries": queries,
            "noise": noise,
            "data-dependent epsilon": epsilon([data_dependent], protection.plan.delta),
            "which is": (
                "itself private, and no guarantee: that of the winners alone, were the noisy counts"
                " not known"
            ),
        }
    return torch.stack(shares).sum(dim=0).argmax(dim=1)


def smallest_vote_noise(protection: Protection, clients: Sequence[Client], queries: int) -> float:
    """Noise of the summed votes that fits into what is left of every client's budget."""
    plan, accountant = protection.plan, protection.accountant
    fixed = {accountant.releases(client.index) for client in clients}

    def released(before: tuple[Steps, ...], noise: float) -> list[Steps]:
        return [*before, release(noise, queries, plan.votes)]

    return max(
        calibrate(partial(released, before), plan.epsilon, plan.delta, plan.accountant)
        for before in fixed
    )
