"""FL-MRCM: its losses by hand, with whom a client is aligned, and what crosses."""

import math

import pytest
import torch

from fedtables.baselines.fl_mrcm import FLMRCM, POOLED, Aligner, alignment_loss, domain_loss
from fedtables.federation.channel import encoded_size
from fedtables.methods.fedavg import FedAvg, Round
from fedtables.models.cut import Latent
from tests.federation.tiny import make_reconstruction_federation
from tests.methods.shards import booked, same_bits, samples_of, size

LN2, LN3, LN4 = math.log(2), math.log(3), math.log(4)
SURE = math.log(4 / 3)
"""Of a probability of 3/4."""
FEATURES = 8 * 16 * POOLED**2
"""Of `unet-8-in`: 128 channels."""


def quick(**changes):
    return FLMRCM(**{"rounds": 3, "hidden": 8, **changes})


# -- losses --

OWN = torch.tensor([[0.0, 0.0], [LN3, 0.0]])
"""Each logit by itself: 1/2 and 1/2, 3/4 and 1/2."""


def test_the_discriminator_tells_a_clients_features_from_those_of_another():
    other = torch.tensor([[0.0, LN3], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    half_own, half_other = (3 * LN2 + SURE) / 4 / 2, (7 * LN2 + SURE) / 8 / 2
    assert domain_loss(OWN, other).item() == pytest.approx(half_own + half_other)


def test_the_encoder_is_to_be_taken_for_the_other():
    own = OWN.clone().requires_grad_()
    loss = alignment_loss(own)
    assert loss.item() == pytest.approx((3 * LN2 + LN4) / 4 / 2)
    loss.backward()  # (sigmoid(z) - code) over 2 elements, 2 samples and 2 domains
    expected = torch.tensor([[0.5, 0.5 - 1], [0.75, 0.5 - 1]]) / (2 * 2 * 2)
    torch.testing.assert_close(own.grad, expected)


def test_the_discriminator_is_leaky_in_both_layers():
    judge = Aligner(samples=1, features=1, hidden=1).discriminator
    with torch.no_grad():
        for layer, weight in ((judge[0], [[1.0]]), (judge[2], [[1.0], [-1.0]])):
            layer.weight.copy_(torch.tensor(weight))
            layer.bias.zero_()
    torch.testing.assert_close(judge(torch.tensor([[-5.0]])), torch.tensor([[-0.2, 1.0]]))


# -- partners --


def partners(federation, client, rounds, **changes):
    found = [
        quick(**changes).partner(federation, federation.clients[client], n + 1)
        for n in range(rounds)
    ]
    return [other and other.index for other in found]


def test_a_client_is_aligned_with_all_others_in_turn_but_in_the_first_round():
    federation = make_reconstruction_federation((2, 2, 2))
    found = [partners(federation, client, 5) for client in range(3)]
    assert found == [[None, 1, 2, 1, 2], [None, 2, 0, 2, 0], [None, 0, 1, 0, 1]]
    for of_round in list(zip(*found, strict=True))[1:]:  # each is one other's partner
        assert sorted(of_round) == [0, 1, 2]


def test_only_with_those_that_have_sent_features_before():
    federation = make_reconstruction_federation((2, 2, 2))
    share = 0.34  # one client in a round
    drawn = [federation.streams.participants(n + 1, share)[0].index for n in range(6)]
    for client in range(3):
        found = partners(federation, client, 6, participation=share)
        for number, other in enumerate(found):
            before = set(drawn[:number]) - {client}
            assert (other in before) if before else other is None


def test_a_client_alone_has_no_partner():
    federation = make_reconstruction_federation((2,))
    assert partners(federation, 0, 3) == [None] * 3
    alone = quick(rounds=2).fit(federation)
    plain = FedAvg(rounds=2, participation=1.0).fit(make_reconstruction_federation((2,)))
    assert same_bits(alone.state, plain.state)


# -- what is learnt --


def fitted(method, sizes=(4, 4)):
    return method.fit(make_reconstruction_federation(sizes))


@pytest.mark.parametrize(
    ("rounds", "weight", "same"), [(1, 1.0, True), (2, 1.0, False), (2, 0.0, True)]
)
def test_the_first_round_is_fedavgs_and_the_second_is_not(rounds, weight, same):
    plain = fitted(FedAvg(rounds=rounds, participation=1.0))
    assert same_bits(fitted(quick(rounds=rounds, adversarial=weight)).state, plain.state) == same


def test_clients_count_alike_whatever_their_size():
    federation = make_reconstruction_federation((6, 2))
    model = federation.networks.initial()
    states = [
        {name: torch.full_like(entry, value) for name, entry in model.state_dict().items()}
        for value in (1.0, 2.0)
    ]
    quick().aggregate(Round(federation, 1, federation.clients, model, {}), iter(states))
    assert {entry.unique().item() for entry in model.state_dict().values()} == {1.5}


# -- what crosses --


def test_features_of_all_images_go_up_and_to_the_partner_in_the_next_round():
    sizes = (6, 4, 3)
    federation = make_reconstruction_federation(sizes)
    model = quick().fit(federation)
    parameters = encoded_size(model.state)
    features = [size("features", n, FEATURES) for n in sizes]
    expected = {}
    for number in (1, 2, 3):
        for k in range(3):
            expected[number, "down", "parameters", k] = (parameters, 1)
            expected[number, "up", "parameters", k] = (parameters, 1)
            expected[number, "up", "features", k] = (features[k], 1)
    for number, others in ((2, (1, 2, 0)), (3, (2, 0, 1))):
        for k, other in enumerate(others):
            expected[number, "down", "features", k] = (features[other], 1)
    assert booked(federation) == expected


def test_features_are_those_of_the_trained_model_and_kept_until_the_next_round(monkeypatch):
    federation = make_reconstruction_federation()
    sent, held = {}, {}
    up, after = federation.channel.up, FLMRCM.aggregate

    def note(client, kind, payload):
        received = up(client, kind, payload)
        sent[client, kind] = {name: tensor.clone() for name, tensor in received.items()}
        return received

    def keep(self, this, states):
        after(self, this, states)
        held.update(this.server)

    monkeypatch.setattr(federation.channel, "up", note)
    monkeypatch.setattr(FLMRCM, "aggregate", keep)
    quick(rounds=1).fit(federation)
    model = federation.networks.initial()
    for client in federation.clients:
        model.load_state_dict(sent[client.index, "parameters"])
        with torch.no_grad():
            expected = Latent(model.eval(), POOLED)(samples_of(client)[0])
        features = sent[client.index, "features"]["features"]
        torch.testing.assert_close(features, expected, atol=1e-5, rtol=1e-4)
        assert torch.equal(held[f"aligner {client.index}"].sent, features)
