"""FedIOD under differential privacy: what leaves a client, clipped and noisy as it is accounted."""

import math

import pytest
import torch

from federation.channel import Channel, encoded_size
from federation.costs import Meter, metering
from federation.seeds import Seeds
from methods.fediod.parties import make_nodes
from methods.fediod.private import noisy_gradient
from privacy.accounting import epsilon
from tests.federation.tiny import CLASSES, make_client
from tests.methods.fediod.cases import PRIVATE, private_federation


def test_in_private_only_noisy_gradients_and_votes_leave_a_client():
    federation = private_federation(channel=Channel())
    model = PRIVATE.fit(federation)
    crossed = {
        (t.round, t.direction, t.kind, t.client): (t.bytes, t.messages)
        for t in federation.channel.ledger
    }
    images = encoded_size({"images": torch.empty(4, 1, 8, 8)})
    asked = encoded_size({"images": torch.empty(7, 1, 8, 8, dtype=torch.uint8)})
    votes = encoded_size({"votes": torch.empty(7, CLASSES)})
    expected = {}
    for k in range(3):
        for epoch in (1, 2):
            expected[epoch, "down", "images", k] = expected[epoch, "up", "gradients", k] = (
                3 * images,
                3,
            )
        expected[3, "down", "images", k], expected[3, "up", "votes", k] = (asked, 1), (votes, 1)
    assert crossed == expected
    assert model.samples.shape == (5, 1, 8, 8)


def test_in_private_gradients_and_votes_share_the_budget():
    federation = private_federation()
    PRIVATE.fit(federation)
    for client in federation.clients:
        gradients, votes = federation.privacy.protection.accountant.releases(client.index)
        assert (gradients.sample_rate, gradients.steps) == (pytest.approx(1 / 3), 2 * 3 * 4)
        assert (votes.sample_rate, votes.steps) == (1.0, 7)
        assert 3.9 < epsilon([gradients], 1e-5) <= 4
        assert 7.9 < federation.privacy.protection.accountant.epsilon(client.index) <= 8


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_what_a_client_sends_of_an_image_is_clipped_whatever_its_discriminator(scale):
    federation = private_federation()
    node, *_ = make_nodes(PRIVATE, federation)
    node.begin_epoch(1)
    for parameter in node.discriminator.module.parameters():
        parameter.data.mul_(scale)
    images = torch.randn(6, 1, 8, 8)
    sent = noisy_gradient(node, images, rate=1.0, noise=1e-12, clients=3)
    norms = sent.flatten(1).norm(dim=1)
    assert norms.max() <= (1 + 1e-4) / 6  # one over the batch, since the loss is a mean over it
    assert (
        norms.min() > (0.05 if scale == 1.0 else 0.99) / 6
    )  # untrained, gradients are not far below the norm
    assert noisy_gradient(node, images, rate=0.0, noise=1e-12, clients=3).abs().max() < 1e-9


def test_the_noise_of_all_clients_together_is_what_the_accountant_was_told():
    federation = private_federation(clients=4)
    images = torch.zeros(200, 1, 8, 8)
    total = 0
    for node in make_nodes(PRIVATE, federation):
        node.begin_epoch(1)
        total += noisy_gradient(node, images, 0.0, 3.0, 4)
    assert total.std() == pytest.approx(3.0 * 2 / 200, rel=0.05)


def test_another_seed_of_the_noise_gives_another_student():
    def weights(mechanism, noise):
        budget = math.inf if mechanism == "released" else 8.0
        return PRIVATE.fit(private_federation(mechanism, budget, seeds=Seeds(noise=noise))).state[
            "head.weight"
        ]

    for mechanism in ("gs-wgan", "released"):
        assert not torch.equal(weights(mechanism, 0), weights(mechanism, 1))


@pytest.mark.parametrize("mechanism", ["gs-wgan", "released"])
def test_a_plan_books_the_bytes_of_a_private_run(mechanism):
    def fitted(device):
        budget = math.inf if mechanism == "released" else 8.0
        federation = private_federation(
            mechanism, budget, [make_client(k, device=device) for k in range(2)], device=device
        )
        PRIVATE.fit(federation)
        return federation.channel.by_kind()

    with metering(Meter()):
        planned = fitted("meta")
    assert planned == fitted("cpu")
