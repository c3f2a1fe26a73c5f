"""What the authors' code of FedIOD does where it departs."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from federation.channel import Channel
from federation.seeds import Stream
from methods.fediod import FedIOD
from methods.fediod.losses import jensen_shannon
from methods.fediod.released import class_balance, noisy_scores, released_diversity
from tests.federation.tiny import make_federation
from tests.methods.fediod.cases import DISJOINT, EQUAL, IDENTICAL, PI, PRIVATE, private_federation


def test_the_papers_term_prefers_clients_that_differ_and_the_released_one_clients_that_agree():
    unique = [
        -jensen_shannon(probabilities, EQUAL).mean().item()
        for probabilities in (IDENTICAL, DISJOINT)
    ]
    released = [released_diversity(probabilities).item() for probabilities in (IDENTICAL, DISJOINT)]
    assert unique[1] < unique[0]
    assert released[0] < released[1]


def test_the_released_term_is_the_mean_divergence_of_clients_from_their_plain_mean_clamped():
    # The mean (1/2, 1/2, 0.01) against (0.99, 0.01, 0.01): the same for both clients.
    expected = 0.5 * math.log(0.5 / 0.99) + 0.5 * math.log(0.5 / 0.01)
    assert released_diversity(DISJOINT).item() == pytest.approx(expected)
    assert released_diversity(IDENTICAL).item() == 0


def test_the_class_balance_is_minus_the_entropy_in_bits_of_each_clients_mean_prediction():
    # Client 0 gives two classes in turn (1 bit), client 1 always the same (0 bits).
    probabilities = torch.tensor(
        [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]]
    )
    assert class_balance(probabilities, PI).item() == pytest.approx(-0.75)


def test_the_released_noise_has_no_epsilon_and_says_so():
    federation = private_federation("released", math.inf)
    replace(PRIVATE, epochs=2).fit(federation)
    assert federation.privacy.protection.accountant.epsilon() == 0
    (note,) = federation.privacy.protection.notes
    assert note.startswith(
        "released DP has no epsilon: logits and the teachers' gradients leave without noise"
    )
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
        PRIVATE.fit(federation)
        return [tensors["own"] for transfer, tensors in sent if "own" in tensors]

    sent = []
    channel = Channel(inspect=lambda transfer, tensors: sent.append((transfer, dict(tensors))))
    plain = own_scores(make_federation(3, channel=channel))
    sent.clear()
    noisy = own_scores(private_federation("released", math.inf, channel=channel))
    torch.testing.assert_close(noisy[0], plain[0])  # before the first step
    assert not torch.allclose(noisy[-1], plain[-1])
