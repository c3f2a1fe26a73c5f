"""FedIOD under differential privacy: what leaves a client, clipped and noisy as it is accounted."""

import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from fedtables.federation.costs import Meter, metering
from fedtables.federation.seeds import Seeds, Stream
from fedtables.methods.fediod import FedIOD
from fedtables.methods.fediod.parties import make_nodes, noisy_scores
from fedtables.privacy.accounting import epsilon
from tests.federation.tiny import CLASSES, make_client, make_federation
from tests.methods.fediod.cases import PRIVATE, private_federation
from tests.methods.shards import booked, recorded, size


def test_in_private_only_noisy_gradients_and_votes_leave_a_client():
    federation = private_federation()
    model = PRIVATE.fit(federation)
    images = size("images", 4, 1, 8, 8)
    asked, votes = size("images", 7, 1, 8, 8, dtype=torch.uint8), size("votes", 7, CLASSES)
    expected = {}
    for k in range(3):
        for epoch in (1, 2):
            expected[epoch, "down", "images", k] = (3 * images, 3)
            expected[epoch, "up", "gradients", k] = (3 * images, 3)
        expected[3, "down", "images", k], expected[3, "up", "votes", k] = (asked, 1), (votes, 1)
    assert booked(federation) == expected
    assert model.samples.shape == (5, 1, 8, 8)
    for client in federation.clients:  # gradients and votes share the budget
        gradients, votes = federation.privacy.protection.accountant.releases(client.index)
        assert (gradients.sample_rate, gradients.steps) == (pytest.approx(1 / 3), 2 * 3 * 4)
        assert (votes.sample_rate, votes.steps) == (1.0, 7)
        assert 3.9 < epsilon([gradients], 1e-5) <= 4
        assert 7.9 < federation.privacy.protection.accountant.epsilon(client.index) <= 8


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_what_a_client_sends_of_an_image_is_clipped_whatever_its_discriminator(scale):
    node, *_ = make_nodes(PRIVATE, private_federation())
    node.begin_epoch(1)
    for parameter in node.discriminator.module.parameters():
        parameter.data.mul_(scale)
    images = torch.randn(6, 1, 8, 8)
    norms = node.noisy_gradient(images, 1.0, 1e-12, clients=3).flatten(1).norm(dim=1)
    assert norms.max() <= (1 + 1e-4) / 6  # one over the batch, since the loss is a mean over it
    # Untrained, gradients are not far below the norm.
    assert norms.min() > (0.05 if scale == 1.0 else 0.99) / 6
    assert node.noisy_gradient(images, 0.0, 1e-12, clients=3).abs().max() < 1e-9


def test_the_noise_of_all_clients_together_is_what_the_accountant_was_told():
    images, total = torch.zeros(200, 1, 8, 8), 0
    for node in make_nodes(PRIVATE, private_federation(clients=4)):
        node.begin_epoch(1)
        total += node.noisy_gradient(images, 0.0, 3.0, 4)
    assert total.std() == pytest.approx(3.0 * 2 / 200, rel=0.05)


BUDGETS = {"gs-wgan": 8.0, "released": math.inf}


@pytest.mark.parametrize("mechanism", BUDGETS)
def test_another_seed_of_the_noise_gives_another_student_and_a_plan_books_the_bytes(mechanism):
    def fitted(noise, device="cpu"):
        clients = [make_client(k, device=device) for k in range(2)]
        options = {"seeds": Seeds(noise=noise), "device": device}
        federation = private_federation(mechanism, BUDGETS[mechanism], clients, **options)
        return PRIVATE.fit(federation).state["head.weight"], federation.channel.by_kind()

    weights, crossed = fitted(0)
    assert not torch.equal(weights, fitted(1)[0])
    with metering(Meter()):
        assert fitted(0, "meta")[1] == crossed


def test_the_released_noise_has_no_epsilon_and_says_so():
    federation = private_federation("released", math.inf)
    PRIVATE.fit(federation)
    assert federation.privacy.protection.accountant.epsilon() == 0
    (note,) = federation.privacy.protection.notes
    assert note.startswith("released DP has no epsilon: logits and the teachers' gradients leave")
    assert "the noise is 0.5 sensitivities" in note
    assert {t.kind for t in federation.channel.ledger if t.direction == "up"} == FedIOD.sends


@pytest.mark.parametrize("noise", [0.0, 10.0])
def test_the_released_noise_is_a_tenth_of_the_bound_that_the_batch_shares(noise):
    last = nn.Conv2d(1, 1, 1)
    nn.init.ones_(last.weight)
    critic = SimpleNamespace(layers=nn.Sequential(nn.Identity(), last))
    images = torch.zeros(64, 1, 16, 16, requires_grad=True)
    stream = Stream(torch.Generator().manual_seed(0), torch.device("cpu"))
    noisy_scores(critic, images, noise, stream).sum().backward()
    if noise:  # a clipped gradient is the same in every pixel
        assert images.grad.std().item() == pytest.approx(10.0 * 0.1 * 100 / 64, rel=0.02)
    else:
        norms = images.grad.flatten(1).norm(dim=1).tolist()
        assert norms == pytest.approx([100 / 64] * 64)


def test_the_released_noise_moves_the_discriminators():
    def own_scores(federation):
        return [x["own"] for _, x in recorded(PRIVATE, federation)[1] if "own" in x]

    plain, noisy = (
        own_scores(make_federation(3)),
        own_scores(private_federation("released", math.inf)),
    )
    torch.testing.assert_close(noisy[0], plain[0])  # before the first step
    assert not torch.allclose(noisy[-1], plain[-1])
