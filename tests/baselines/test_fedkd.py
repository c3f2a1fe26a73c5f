"""FedKD: weights by class counts, the ensemble by hand, and what crosses in one shot and in many
rounds.
"""

import pytest
import torch

from baselines.fedkd import FedKD, weighted_ensemble
from federation.augmentation.basic import Augmentation
from federation.channel import Channel, encoded_size
from federation.data import PublicData
from federation.inside.protection import Protection
from federation.seeds import Seeds
from federation.shared.averaging import class_count_weights
from federation.shared.views import public_view
from federation.training.plan import DivergedError, TrainingPlan
from methods.fedmd import absolute_error
from privacy.pate import histogram
from privacy.plan import PrivacyPlan
from tests.federation.tiny import CLASSES, bright_images, make_federation
from tests.methods.shards import client_with, distance, mixed_clients, network_inputs, same_bits

COUNTS = torch.tensor([[3, 0, 0], [1, 2, 0]])
SHIFTED = Augmentation(rotation=20, shift=0.2)


def test_a_client_weighs_in_each_class_by_its_share_of_all_samples_of_the_class():
    torch.testing.assert_close(
        class_count_weights(COUNTS)[:, :2], torch.tensor([[0.75, 0.0], [0.25, 1.0]])
    )


def test_for_a_class_that_nobody_holds_clients_count_alike():
    assert class_count_weights(COUNTS)[:, 2].tolist() == [0.5, 0.5]
    assert class_count_weights(torch.zeros(4, 1, dtype=torch.long)).flatten().tolist() == [0.25] * 4


def test_the_ensemble_is_a_weighted_sum_of_logits_class_by_class():
    logits = torch.tensor([[[4.0, 8.0, 2.0], [0.0, 1.0, 0.0]], [[8.0, -2.0, 6.0], [4.0, 3.0, 1.0]]])
    ensemble = weighted_ensemble(logits, class_count_weights(COUNTS))
    # 0.75 * 4 + 0.25 * 8, 0 * 8 + 1 * -2, (2 + 6) / 2; 0.25 * 4, 3, 1 / 2
    torch.testing.assert_close(ensemble, torch.tensor([[5.0, -2.0, 4.0], [1.0, 3.0, 0.5]]))


def test_in_one_shot_the_student_imitates_the_ensemble_by_absolute_error(monkeypatch):
    federation = make_federation([client_with(0, [0, 0, 0, 1]), client_with(1, [0, 1, 1, 1, 2])])
    distilled = []
    monkeypatch.setattr(federation, "distill", lambda *arguments: distilled.append(arguments))
    FedKD().fit(federation)
    first, second = (federation.public_outputs(model) for model in federation.local_models())
    ((targets, loss),) = distilled
    weights = torch.tensor([[3 / 4, 1 / 4, 0.0], [1 / 4, 3 / 4, 1.0]])
    torch.testing.assert_close(targets, weights[0] * first + weights[1] * second)
    assert loss is absolute_error


def test_in_one_shot_every_client_sends_its_counts_and_the_logits_of_the_whole_public_set_once():
    federation = make_federation(clients=3)
    FedKD().fit(federation)
    counts = encoded_size({"counts": torch.empty(CLASSES, dtype=torch.long)})
    logits = encoded_size({"logits": torch.empty(6, CLASSES)})
    expected = [("up", "labels", k, counts, 1) for k in range(3)] + [
        ("up", "logits", k, logits, 1) for k in range(3)
    ]
    ledger = [
        (t.direction, t.kind, t.client, t.bytes, t.messages) for t in federation.channel.ledger
    ]
    assert sorted(ledger) == sorted(expected)
    assert {t.kind for t in federation.channel.ledger} == FedKD.sends
    assert federation.channel.total("down") == 0


def test_in_many_rounds_logits_of_the_whole_public_set_go_up_in_every_epoch():
    federation = make_federation(clients=3)
    FedKD(multi_round=True).fit(federation)
    logits = encoded_size({"logits": torch.empty(6, CLASSES)})
    sent = [t for t in federation.channel.ledger if t.kind == "logits"]
    assert federation.server.epochs == 2
    assert sorted((t.round, t.direction, t.client, t.bytes) for t in sent) == [
        (n, "up", k, logits) for n in (1, 2) for k in range(3)
    ]
    assert [(t.direction, t.client) for t in federation.channel.ledger if t.kind == "labels"] == [
        ("up", k) for k in range(3)
    ]
    assert federation.channel.total("down") == 0


def sent_logits(augmentation, **changes):
    """What client 0 sends in each of two rounds."""
    sent = []

    def look(transfer, tensors):
        if (transfer.kind, transfer.client) == ("logits", 0):
            sent.append(tensors["logits"])

    federation = make_federation(
        augmentation=augmentation, channel=Channel(inspect=look), **changes
    )
    FedKD(multi_round=True).fit(federation)
    return sent


def test_in_many_rounds_teachers_answer_for_freshly_augmented_images_each_time():
    first, second = sent_logits(SHIFTED)
    assert not torch.allclose(first, second)
    again, _ = sent_logits(SHIFTED)
    assert torch.equal(first, again)


def test_without_augmentation_teachers_give_the_same_answer_in_every_round():
    first, second = sent_logits(None)
    assert torch.equal(first, second)


def test_all_parties_see_the_same_view_of_a_round_and_leave_the_public_images_alone():
    federation = make_federation(augmentation=SHIFTED)
    before = federation.public.images.clone()
    view, again, other = (public_view(federation, number) for number in (1, 1, 2))
    assert (view.dtype, view.shape) == (torch.uint8, before.shape)
    assert torch.equal(view, again)
    assert not torch.equal(view, other)
    assert torch.equal(federation.public.images, before)
    assert not torch.equal(
        public_view(make_federation(augmentation=SHIFTED, seeds=Seeds(shuffling=1)), 1), view
    )


def test_in_many_rounds_the_student_descends_the_absolute_error_to_the_ensemble():
    federation = make_federation()
    federation.server = TrainingPlan(epochs=2, batch_size=6, lr=0.05, optimizer="sgd")
    model = FedKD(multi_round=True).fit(federation)
    first, second = (federation.public_outputs(teacher) for teacher in federation.local_models())
    target = torch.tensor([1.0, 0.5, 0.0]) * first + torch.tensor([0.0, 0.5, 1.0]) * second
    student = federation.networks.initial("cnn-small")
    weights = list(student.parameters())
    for _ in range(2):
        loss = (student(network_inputs(federation.public.images)) - target).abs().mean()
        gradients = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            for weight, gradient in zip(weights, gradients, strict=True):
                weight -= 0.05 * gradient
    torch.testing.assert_close(model.state, student.state_dict(), atol=1e-4, rtol=1e-3)
    assert len(model.history["accuracy"]) == 2


DIVERGES = [False, True]


@pytest.mark.parametrize("multi_round", DIVERGES)
def test_a_student_that_diverges_is_an_error(multi_round):
    federation = make_federation(server=TrainingPlan(epochs=2, batch_size=3, lr=1e30))
    with pytest.raises(DivergedError, match="lower lr"):
        FedKD(multi_round=multi_round).fit(federation)


CLIPS = [False, True]


@pytest.mark.parametrize("multi_round", CLIPS)
def test_the_servers_plan_may_limit_the_gradients_norm(multi_round):
    def state(clip_norm):
        plan = TrainingPlan(epochs=1, batch_size=6, lr=0.1, optimizer="sgd", clip_norm=clip_norm)
        return FedKD(multi_round=multi_round).fit(make_federation(server=plan)).state

    start = make_federation().networks.initial("cnn-small").state_dict()
    assert distance(state(0.0), start) > 2e-3
    assert distance(state(0.01), start) == pytest.approx(0.1 * 0.01, rel=1e-2)


ODD = [False, True]


@pytest.mark.parametrize("multi_round", ODD)
def test_a_last_batch_of_a_single_image_is_no_trouble_for_batchnorm(multi_round):
    public = PublicData(bright_images(torch.arange(4) % CLASSES, 100), "four images")
    federation = make_federation(
        public=public, network="resnet18", server=TrainingPlan(epochs=1, batch_size=3)
    )
    assert len(FedKD(multi_round=multi_round).fit(federation).history["accuracy"]) == 1


@pytest.mark.parametrize("multi_round", [False, True])
def test_networks_may_differ_between_clients_and_from_the_servers(multi_round):
    federation = make_federation(mixed_clients(), network="densenet-tiny")
    model = FedKD(multi_round=multi_round).fit(federation)
    assert model.network == "densenet-tiny"
    assert federation.networks.module(model)(torch.zeros(2, 1, 8, 8)).shape == (2, CLASSES)


@pytest.mark.parametrize("multi_round", [False, True])
def test_it_learns_and_repeats_to_the_last_bit(multi_round):
    def fit():
        public = PublicData(bright_images(torch.arange(30) % CLASSES, 100), "thirty images")
        federation = make_federation(clients=3, public=public)
        federation.server = TrainingPlan(epochs=12, batch_size=6, lr=0.01)
        return FedKD(multi_round=multi_round).fit(federation)

    model = fit()
    assert model.history["accuracy"][-1] >= 2 / 3
    assert same_bits(model.state, fit().state)


def test_in_private_the_student_learns_the_class_with_the_most_noisy_votes(monkeypatch):
    plan = PrivacyPlan("pate", epsilon=1e4, queries=4)
    federation = make_federation(3, protection=Protection(plan, FedKD.protected["pate"]))
    learnt = []
    monkeypatch.setattr(
        federation, "distill", lambda targets, loss, images: learnt.append((targets, images))
    )
    FedKD().fit(federation)
    ((labels, images),) = learnt
    chosen = federation.streams.shuffling("queries").shuffled(6)[:4]
    outputs = torch.stack([federation.public_outputs(m)[chosen] for m in federation.local_models()])
    counts = histogram(outputs)
    assert all(counts[n, label] == counts[n].max() for n, label in enumerate(labels))
    assert torch.equal(images, federation.public.images[chosen])


def test_in_private_only_votes_leave_a_client_and_they_use_its_budget_up():
    plan = PrivacyPlan("pate", epsilon=3.0, queries=100)
    federation = make_federation(
        3, channel=Channel(), protection=Protection(plan, FedKD.protected["pate"])
    )
    FedKD().fit(federation)
    size = encoded_size(
        {"votes": torch.empty(6, CLASSES)}
    )  # there are six public images to vote on
    assert [(t.direction, t.kind, t.client, t.bytes) for t in federation.channel.ledger] == [
        ("up", "votes", client, size) for client in range(3)
    ]
    assert all(
        2.9 < federation.privacy.protection.accountant.epsilon(client) <= 3 for client in range(3)
    )


def test_teachers_of_dp_sgd_answer_with_logits_and_noisy_counts():
    plan = PrivacyPlan("dp-sgd", epsilon=8.0)
    federation = make_federation(
        2, channel=Channel(), protection=Protection(plan, FedKD.protected["dp-sgd"])
    )
    FedKD().fit(federation)
    assert {t.kind for t in federation.channel.ledger} == {"logits", "labels"}
    assert all(
        7.5 < federation.privacy.protection.accountant.epsilon(client) <= 8 for client in range(2)
    )
