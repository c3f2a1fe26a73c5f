"""Co-Boosting: its losses and updates by hand, and what crosses once."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from fedtables.baselines import co_boosting
from fedtables.baselines.co_boosting import (
    CoBoosting,
    direction,
    hard_sample_loss,
    reweighted,
    weighted_mean,
)
from fedtables.federation.samples import counted
from fedtables.federation.shared.datafree import divergence, uploaded_networks
from tests.federation.tiny import make_federation
from tests.methods.shards import booked, client_with, mixed_clients, same_bits

WEIGHTS = torch.tensor([0.5, 1.0])
LOGITS = torch.tensor([[[3.0, 0.0]], [[0.0, 3.0]]])
"""Two clients that take one image for different classes."""


def quick(**changes):
    sizes = {"epochs": 3, "batch_size": 4, "generator_steps": 2, "latent": 5, "width": 4}
    return CoBoosting(**{**sizes, **changes})


@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_the_ensemble_is_a_mean_whatever_the_weights_sum_to(scale):
    mean = weighted_mean(LOGITS, scale * WEIGHTS)
    torch.testing.assert_close(mean, torch.tensor([[1.0, 2.0]]))


def test_easy_images_count_less_by_a_factor_without_a_gradient():
    ensemble = torch.tensor([[0.9, 0.1], [0.25, 0.75]]).log().requires_grad_()
    labels = torch.tensor([0, 0])
    loss = hard_sample_loss(ensemble, labels, 2.0)
    errors = [-math.log(0.9), -math.log(0.25)]
    assert loss.item() == pytest.approx((0.1**2 * errors[0] + 0.75**2 * errors[1]) / 2)
    loss.backward()
    # The gradient of the cross-entropy is p - y.
    expected = torch.tensor([[-0.1, 0.1], [-0.75, 0.75]]) * torch.tensor([[0.01], [0.5625]]) / 2
    torch.testing.assert_close(ensemble.grad, expected)


def test_without_hardness_it_is_the_cross_entropy():
    ensemble, labels = torch.randn(5, 3), torch.tensor([0, 1, 2, 0, 1])
    expected = F.cross_entropy(ensemble, labels)
    torch.testing.assert_close(hard_sample_loss(ensemble, labels, 0.0), expected)


def test_weights_take_a_step_of_one_length_towards_who_knows_the_label():
    labels = torch.tensor([0])
    assert reweighted(WEIGHTS, LOGITS, labels, 0.1).tolist() == pytest.approx([0.6, 0.9])
    assert reweighted(0.5 * WEIGHTS, LOGITS, labels, 0.1).tolist() == pytest.approx([0.35, 0.4])


def test_weights_stay_between_0_and_1():
    assert reweighted(WEIGHTS, LOGITS, torch.tensor([0]), 2.0).tolist() == [1.0, 0.0]
    assert reweighted(WEIGHTS, LOGITS, torch.tensor([1]), 0.1).tolist() == pytest.approx([0.4, 1.0])


def test_images_move_up_the_gradient_of_a_random_mixture_of_probabilities():
    inputs = torch.tensor([[[[1.0, -2.0]]], [[[0.5, 0.5]]]])

    def ensemble(x):  # the first pixel speaks for the first class, the second against it
        score = x[:, 0, 0, 0] - x[:, 0, 0, 1]
        return torch.stack([score, torch.zeros_like(score)], dim=1)

    draws = torch.tensor([[1.0, 0.0], [0.0, 0.5]])
    expected = [[[[1.0, -1.0]]], [[[-1.0, 1.0]]]]
    assert direction(inputs, ensemble, draws).tolist() == expected


@pytest.mark.parametrize(("mu", "decay"), [(0.2, 0.5), (0.2, 1.0)])
def test_steps_of_the_weights_decay_from_epoch_to_epoch(mu, decay, monkeypatch):
    steps, original = [], reweighted

    def noted(weights, logits, labels, step):
        steps.append((step, len(labels)))
        return original(weights, logits, labels, step)

    monkeypatch.setattr(co_boosting, "reweighted", noted)
    quick(mu=mu, mu_decay=decay).fit(make_federation())
    # Two clients; none in the first epoch, then a step for each batch made before.
    own = mu / 2
    expected = [own * decay, own * decay**2, own * decay**2]
    assert [step for step, _ in steps] == pytest.approx(expected)
    assert {rows for _, rows in steps} == {4}


def test_without_its_own_steps_the_generator_and_the_student_learn_by_plain_losses(monkeypatch):
    federation, seen = make_federation(), []
    images, labels = torch.rand(4, 1, 8, 8), torch.tensor([0, 1, 2, 0])

    def synthesise(method, federation, loss, epoch, clip_norm):
        seen.append(loss(federation.normalise(images), labels).item())
        return images, labels

    monkeypatch.setattr(CoBoosting, "synthesise", synthesise)
    method = quick(epochs=1, hardness=0.0, mu=0.0, epsilon=0.0, adversarial=0.5)
    found = method.fit(federation)
    inputs = federation.normalise(images)
    ensemble = torch.stack([t(inputs) for t in uploaded_networks(federation)]).mean(dim=0)
    student = federation.networks.initial()
    apart = divergence(student.eval()(inputs), ensemble, 3.0).mean()
    expected = F.cross_entropy(ensemble, labels) - apart / 2
    assert seen == [pytest.approx(expected.item(), rel=1e-5)]
    # One step of SGD on 16 KL at temperature 4.
    optimizer = torch.optim.SGD(student.parameters(), 0.01, momentum=0.9, weight_decay=1e-4)
    divergence(student.train()(inputs), ensemble, 4.0).mean().backward()
    torch.nn.utils.clip_grad_norm_(student.parameters(), 10.0)
    optimizer.step()
    for name, tensor in student.state_dict().items():
        torch.testing.assert_close(found.state[name], tensor, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("setting", ["mu", "epsilon", "hardness", "adversarial"])
def test_each_part_reaches_the_student(setting):
    method = quick(lr=0.1, mu=0.5)
    without = replace(method, **{setting: 0.0})
    first, other = (m.fit(make_federation()).state for m in (method, without))
    assert not same_bits(first, other)


def test_clients_with_samples_send_their_networks_once_and_nothing_goes_down():
    federation = make_federation([*mixed_clients(), client_with(2, [])])
    quick().fit(federation)
    assert set(booked(federation)) == {(0, "up", "parameters", k) for k in (0, 1)}


def test_the_generator_and_the_student_are_the_networks_that_learn():
    federation = make_federation()
    federation.local_models()
    with counted() as seen:
        quick().fit(federation)
    assert seen.total()["server"] == 3 * 2 * 4 + 4 + 8 + 12  # the pool grows
