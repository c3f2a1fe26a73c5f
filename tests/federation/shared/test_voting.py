"""Votes across the channel: who wins, what it costs, and that only shares cross."""

import math

import pytest
import torch

from fedtables.federation.inside.privacy import Protection
from fedtables.federation.shared.voting import smallest_vote_noise, vote
from fedtables.privacy.accounting import epsilon
from fedtables.privacy.pate import release
from fedtables.privacy.plan import PrivacyPlan
from fedtables.privacy.releases import GaussianSteps
from tests.federation.tiny import CLASSES, make_federation

LABELS = torch.tensor([0, 2, 1, 0])


def private(budget, clients=3, votes="gaussian", **options):
    plan = PrivacyPlan("pate", epsilon=budget, votes=votes)
    return make_federation(clients, protection=Protection(plan, frozenset({"votes"})), **options)


def answers(client):
    """The first two clients say `LABELS`, the third the class after it."""
    return torch.nn.functional.one_hot((LABELS + (client.index == 2)) % CLASSES, CLASSES).float()


@pytest.mark.parametrize("votes", ["gaussian", "laplace"])
def test_with_next_to_no_noise_the_majority_wins(votes):
    federation = private(1e4, votes=votes)
    assert vote(federation, federation.clients, answers, len(LABELS)).tolist() == LABELS.tolist()


@pytest.mark.parametrize("votes", ["gaussian", "laplace"])
def test_the_votes_use_up_what_is_left_of_the_budget(votes):
    federation = private(5.0, votes=votes)
    federation.privacy.spend(federation.clients[1], GaussianSteps(1.0, 0.1, 10))
    noise = smallest_vote_noise(federation.privacy.protection, federation.clients, len(LABELS))
    vote(federation, federation.clients, answers, len(LABELS))
    assert 4.9 < federation.privacy.protection.accountant.epsilon(1) <= 5
    assert federation.privacy.protection.accountant.epsilon(0) == pytest.approx(
        epsilon([release(noise, len(LABELS), votes)], 1e-5)
    )
    details = federation.privacy.protection.details["votes"]
    assert (details["clients"], details["queries"], details["noise"]) == (3, len(LABELS), noise)
    assert (
        0 < details["data-dependent epsilon"] <= epsilon([release(noise, len(LABELS), votes)], 1e-5)
    )


def watched(federation):
    """The federation, and what will have crossed in it."""
    sent = []

    def deliver(transfer, tensors):
        sent.append((transfer, dict(tensors)))
        return tensors

    federation.channel.deliver = deliver
    return federation, sent


def test_what_crosses_is_a_share_of_votes_and_noise_and_the_images_where_asked():
    federation, sent = watched(private(3.0))
    vote(federation, federation.clients, answers, len(LABELS), images=federation.public.images[:4])
    assert [(t.direction, t.kind, t.client) for t, _ in sent] == [
        step for k in range(3) for step in (("down", "images", k), ("up", "votes", k))
    ]
    shares = [tensors["votes"] for transfer, tensors in sent if transfer.direction == "up"]
    assert all(
        share.shape == (4, CLASSES) and not ((share == 0) | (share == 1)).any() for share in shares
    )


def test_shares_of_the_noise_add_up_to_all_of_it():
    federation = private(2.0, clients=4)
    noise = smallest_vote_noise(federation.privacy.protection, federation.clients, 2000)
    federation, sent = watched(private(2.0, clients=4))
    vote(
        federation,
        federation.clients,
        lambda client: torch.eye(CLASSES)[torch.zeros(2000, dtype=torch.int64)],
        2000,
    )
    total = torch.stack([tensors["votes"] for _, tensors in sent]).sum(dim=0)
    assert total[:, 0].mean() == pytest.approx(4, abs=5 * noise / math.sqrt(2000))
    assert total.std(dim=0).mean() == pytest.approx(noise, rel=0.05)
