"""FD: the teachers and their loss by hand, what crosses, and what reaches the clients."""

import math

import pytest
import torch
import torch.nn.functional as F

from fedtables.baselines.fd import FD, teachers_of, teaching_loss
from fedtables.federation.fitting import fit
from tests.federation.tiny import CLASSES, make_federation
from tests.methods.shards import (
    ONE_STEP,
    booked,
    client_with,
    mixed_clients,
    network_inputs,
    recorded,
    same_bits,
    samples_of,
    size,
    trained_alone,
)


def test_the_loss_is_the_cross_entropy_with_the_teacher_of_the_label():
    # The model says thirds to the first sample, and (1/2, 1/4, 1/4) to the second.
    outputs = torch.tensor([[0.0, 0.0, 0.0], [math.log(2), 0.0, 0.0]])
    teachers = torch.tensor([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7], [0.0, 0.0, 1.0]])
    expected = (math.log(3) + 0.5 * math.log(2) + 0.5 * math.log(4)) / 2
    assert teaching_loss(outputs, torch.tensor([2, 0]), teachers).item() == pytest.approx(expected)


def test_a_class_without_a_teacher_costs_nothing_and_teaches_nothing():
    outputs = torch.randn(4, CLASSES, requires_grad=True)
    loss = teaching_loss(outputs, torch.tensor([0, 1, 2, 0]), torch.zeros(CLASSES, CLASSES))
    loss.backward()
    assert loss.item() == 0
    assert not outputs.grad.any()


def test_two_clients_exchange_what_they_sent():
    means = torch.rand(2, CLASSES, CLASSES, generator=torch.Generator().manual_seed(0))
    teachers = teachers_of(means, torch.tensor([[5, 1, 9], [2, 2, 2]]))
    assert torch.equal(teachers, means.flip(0))


def test_a_teacher_is_the_plain_mean_of_the_other_holders():
    means = torch.arange(27.0).view(3, 3, 3)
    counts = torch.tensor([[9, 0, 4], [1, 1, 0], [1, 5, 0]])
    teachers = teachers_of(means, counts)
    torch.testing.assert_close(teachers[:, 0], (means[[1, 0, 0], 0] + means[[2, 2, 1], 0]) / 2)
    # Who lacks a class hears all that hold it; each of its two holders hears the other.
    torch.testing.assert_close(teachers[0, 1], (means[1, 1] + means[2, 1]) / 2)
    assert torch.equal(teachers[1:, 1], means[[2, 1], 1])
    # A sole holder has no teacher, and teaches the others.
    assert not teachers[0, 2].any()
    assert torch.equal(teachers[1:, 2], means[[0, 0], 2])


@pytest.mark.parametrize(
    ("method", "same"),
    [
        (FD(rounds=3, gamma=0.0), True),
        (FD(rounds=1), True),  # nobody has a teacher yet
        (FD(rounds=2), False),
    ],
)
def test_teachers_reach_the_loss_from_the_second_round_on(method, same):
    fitted = method.fit(make_federation(clients=3))
    expected = trained_alone(method.rounds, make_federation(clients=3))
    for checkpoint, state in zip(fitted, expected, strict=True):
        assert same_bits(checkpoint.state, state) == same


def test_what_a_client_sends_it_gathers_while_it_learns():
    federation = make_federation(
        [client_with(0, [0] * 4 + [1] * 5), client_with(1, [1, 2])], local=ONE_STEP
    )
    images, labels = samples_of(federation.clients[0])
    model = federation.networks.initial("cnn-small").train()
    probabilities = model(network_inputs(images)).softmax(dim=1)
    _, sent = recorded(FD(rounds=1), federation)
    up = {t.kind: content for t, content in sent if (t.client, t.direction) == (0, "up")}
    expected = torch.stack([probabilities[labels == 0].mean(0), probabilities[labels == 1].mean(0)])
    torch.testing.assert_close(up["logits"]["means"][:2], expected)
    assert not up["logits"]["means"][2].any()
    assert up["labels"]["counts"].tolist() == [4, 5, 0]


def test_the_second_round_is_a_step_on_labels_and_teachers():
    federation = make_federation(local=ONE_STEP)
    fitted, sent = recorded(FD(rounds=2, gamma=0.5), federation)
    images, labels = samples_of(federation.clients[0])
    teachers = next(content for t, content in sent if (t.client, t.direction) == (0, "down"))
    model = federation.networks.initial("cnn-small").train()
    for gamma in (0.0, 0.5):
        outputs = model(network_inputs(images))
        log_p = outputs.log_softmax(dim=1)
        taught = -(teachers["teacher"][labels] * log_p).sum(dim=1).mean()
        loss = F.cross_entropy(outputs, labels) + gamma * taught
        weights = list(model.parameters())
        for weight, slope in zip(weights, torch.autograd.grad(loss, weights), strict=True):
            weight.data -= 0.1 * slope
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(fitted[0].state[name], tensor)


def test_every_byte_is_a_row_for_each_class_whatever_a_client_holds():
    federation = make_federation([client_with(0, [0, 1, 2] * 4), client_with(1, [1, 1])])
    FD(rounds=2).fit(federation)
    square, counts = (CLASSES, CLASSES), size("counts", CLASSES, dtype=torch.int64)
    expected = {}
    for number in (1, 2):
        for client in (0, 1):
            expected[number, "up", "logits", client] = (size("means", *square), 1)
            expected[number, "up", "labels", client] = (counts, 1)
            expected[number, "down", "logits", client] = (size("teacher", *square), 1)
    assert booked(federation) == expected


def test_networks_may_differ_and_each_client_keeps_its_own():
    federation = make_federation(mixed_clients())
    fitted = FD(rounds=2).fit(federation)
    assert [one.network for one in fitted] == ["cnn-small", "resnet8-narrow"]
    assert [one.owner for one in fitted] == ["client-0", "client-1"]
    for checkpoint in fitted:
        assert federation.networks.module(checkpoint)(torch.zeros(2, 1, 8, 8)).shape == (2, 3)


def test_the_history_of_a_client_has_a_value_for_every_round():
    for checkpoint in fit(make_federation(), FD(rounds=3)):
        assert len(checkpoint.history["accuracy"]) == 3


def test_a_client_without_samples_sends_nothing_and_keeps_its_first_network():
    federation = make_federation([client_with(0, [0, 1] * 3), client_with(1, [])])
    fitted = FD(rounds=1).fit(federation)
    assert {t.client for t in federation.channel.ledger} == {0}
    assert same_bits(fitted[1].state, federation.networks.initial("cnn-small").state_dict())
