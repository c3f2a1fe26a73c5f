"""DLAD: Eq. 2 to 4 by hand, and the steps that lead to them."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedtables.federation.channel import encoded_size
from fedtables.methods.dlad import DLAD, confidence_weights, mixture
from tests.federation.tiny import CLASSES, make_federation
from tests.methods.shards import booked, recorded

CONFIDENCE = torch.tensor([[1.0, 0.5], [0.9, 0.5]])


def test_weights_are_the_softmax_over_clients_of_confidence_over_temperature():
    # (1.0 - 0.9) / 0.05 = 2: the first client gets e^2 times the weight of the second.
    high = math.e**2 / (math.e**2 + 1)
    torch.testing.assert_close(
        confidence_weights(CONFIDENCE, 0.05), torch.tensor([[high, 0.5], [1 - high, 0.5]])
    )


@settings(deadline=None)
@given(st.integers(1, 30), st.integers(1, 20), st.floats(0.01, 10), st.integers(0, 99))
def test_weights_sum_to_one_over_clients_and_follow_confidence(clients, samples, temperature, seed):
    confidence = torch.rand(clients, samples, generator=torch.Generator().manual_seed(seed))
    weights = confidence_weights(confidence, temperature)
    torch.testing.assert_close(weights.sum(dim=0), torch.ones(samples))
    most_confident = weights.gather(0, confidence.argmax(dim=0, keepdim=True))
    torch.testing.assert_close(most_confident[0], weights.amax(dim=0))


def test_the_mixture_weights_each_clients_probabilities_sample_by_sample():
    weights = torch.tensor([[0.75, 0.2], [0.25, 0.8]])
    probabilities = torch.tensor([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.0, 1.0]]])
    torch.testing.assert_close(
        mixture(weights, probabilities), torch.tensor([[0.75, 0.25], [0.1, 0.9]])
    )


def test_classifiers_tell_private_images_at_weight_one_and_a_half_from_public_ones():
    federation = make_federation()
    plan = replace(federation.local, epochs=2)
    for client, model in zip(federation.clients, federation.local_models(), strict=True):
        training = DLAD().classifier_training(federation, client, model, plan)
        own = client.run(training.samples)
        assert torch.equal(own.images[:12], client.run(lambda shard: shard.images))
        assert torch.equal(own.images[12:], federation.public.images)
        assert own.targets.flatten().tolist() == [1.0] * 12 + [0.0] * 6
        assert own.weights.tolist() == [1.5] * 12 + [1.0] * 6
        assert (training.training.plan, training.client) == (plan, client)


def test_a_classifier_starts_from_the_body_of_its_clients_model():
    federation = make_federation()
    for client, model in zip(federation.clients, federation.local_models(), strict=True):
        training = DLAD().classifier_training(federation, client, model, federation.local)
        start = training.model.state_dict()
        assert start["head.weight"].shape[0] == 1
        body = {
            name: tensor for name, tensor in model.state.items() if not name.startswith("head.")
        }
        assert all(torch.equal(start[name], tensor) for name, tensor in body.items())


def test_the_global_model_imitates_the_confidence_weighted_mixture(monkeypatch):
    federation, distilled = make_federation(), []
    monkeypatch.setattr(federation, "distill", distilled.append)
    _, messages = recorded(DLAD(classifier_epochs=2, temperature=0.1), federation)
    sent = [tensors for _, tensors in messages]
    images = (federation.public.images / 255 - 0.5) / 0.25

    def outputs(state, size):
        network = federation.networks.replace_head(
            federation.networks.initial("cnn-small"), size, "any"
        )
        network.load_state_dict(state)
        with torch.no_grad():
            return network.eval()(images)

    models, judges = sent[:2], sent[2:]
    confidence = torch.stack([1 / (1 + torch.exp(-outputs(state, 1)[:, 0])) for state in judges])
    odds = torch.exp(confidence / 0.1)
    expected = sum(
        odds[k, :, None] / odds.sum(0)[:, None] * outputs(models[k], CLASSES).softmax(1)
        for k in range(2)
    )
    torch.testing.assert_close(distilled[0], expected, atol=1e-5, rtol=1e-4)


def test_every_client_sends_its_model_and_its_classifier_once_and_gets_nothing_back():
    federation = make_federation()
    DLAD(classifier_epochs=1).fit(federation)
    networks = [
        federation.networks.initial("cnn-small"),
        federation.networks.replace_head(federation.networks.initial("cnn-small"), 1, "any"),
    ]
    both = sum(encoded_size(network.state_dict()) for network in networks)
    assert booked(federation) == {(0, "up", "parameters", k): (both, 2) for k in (0, 1)}


@pytest.mark.parametrize(
    ("changes", "anew"), [({"temperature": 5.0}, 0), ({"client_weight": 3.0}, 2)]
)
def test_settings_compute_anew_what_they_change_of_the_clients_models(changes, anew):
    federation = make_federation()
    DLAD(classifier_epochs=1).fit(federation)
    done = len(federation.stages.cache.events)
    DLAD(classifier_epochs=1, **changes).fit(federation)
    computed = [event.kind for event in federation.stages.cache.events[done:] if event.computed]
    assert computed.count("client-classifier") == anew
    assert "local-model" not in computed
