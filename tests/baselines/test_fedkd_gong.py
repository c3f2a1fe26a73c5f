"""FedKD: weights by class counts, the ensemble by hand, and what crosses in one shot and in many
rounds.
"""

import pytest
import torch

from fedtables.baselines.fedkd_gong import FedKDGong, weighted_ensemble
from fedtables.federation.augmentation import Augmentation
from fedtables.federation.inside.privacy import Protection
from fedtables.federation.shared.averaging import class_count_weights
from fedtables.federation.training.plan import TrainingPlan
from fedtables.methods.fedmd import absolute_error
from fedtables.privacy.pate import histogram
from fedtables.privacy.plan import PrivacyPlan
from tests.federation.tiny import CLASSES, make_federation
from tests.methods.shards import booked, client_with, network_inputs, recorded, size

COUNTS = torch.tensor([[3, 0, 0], [1, 2, 0]])


def test_the_ensemble_is_a_weighted_sum_of_logits_class_by_class():
    logits = torch.tensor([[[4.0, 8.0, 2.0], [0.0, 1.0, 0.0]], [[8.0, -2.0, 6.0], [4.0, 3.0, 1.0]]])
    ensemble = weighted_ensemble(logits, class_count_weights(COUNTS))
    # 0.75 * 4 + 0.25 * 8, 0 * 8 + 1 * -2, (2 + 6) / 2; 0.25 * 4, 3, 1 / 2
    torch.testing.assert_close(ensemble, torch.tensor([[5.0, -2.0, 4.0], [1.0, 3.0, 0.5]]))


def test_in_one_shot_the_student_imitates_the_ensemble_by_absolute_error(monkeypatch):
    federation = make_federation([client_with(0, [0, 0, 0, 1]), client_with(1, [0, 1, 1, 1, 2])])
    distilled = []
    monkeypatch.setattr(federation, "distill", lambda *arguments: distilled.append(arguments))
    FedKDGong().fit(federation)
    first, second = (federation.public_outputs(model) for model in federation.local_models())
    ((targets, loss),) = distilled
    weights = torch.tensor([[3 / 4, 1 / 4, 0.0], [1 / 4, 3 / 4, 1.0]])
    torch.testing.assert_close(targets, weights[0] * first + weights[1] * second)
    assert loss is absolute_error


@pytest.mark.parametrize("multi_round", [False, True])
def test_counts_go_up_once_and_logits_of_the_public_set_once_or_in_every_epoch(multi_round):
    federation = make_federation(clients=3)
    FedKDGong(multi_round=multi_round).fit(federation)
    counts, logits = size("counts", CLASSES, dtype=torch.long), size("logits", 6, CLASSES)
    rounds = (1, 2) if multi_round else (0,)
    assert booked(federation) == {
        **{(0, "up", "labels", k): (counts, 1) for k in range(3)},
        **{(n, "up", "logits", k): (logits, 1) for n in rounds for k in range(3)},
    }


@pytest.mark.parametrize("augmentation", [None, Augmentation(rotation=20, shift=0.2)])
def test_in_many_rounds_teachers_answer_for_freshly_augmented_images_each_time(augmentation):
    _, sent = recorded(FedKDGong(multi_round=True), make_federation(augmentation=augmentation))
    first, second = (x["logits"] for t, x in sent if (t.kind, t.client) == ("logits", 0))
    assert torch.equal(first, second) == (augmentation is None)


def test_in_many_rounds_the_student_descends_the_absolute_error_to_the_ensemble():
    federation = make_federation()
    federation.server = TrainingPlan(epochs=2, batch_size=6, lr=0.05, optimizer="sgd")
    model = FedKDGong(multi_round=True).fit(federation)
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


def test_in_private_the_student_learns_the_class_with_the_most_noisy_votes(monkeypatch):
    plan = PrivacyPlan("pate", epsilon=1e4, queries=4)
    federation = make_federation(3, protection=Protection(plan, FedKDGong.protected["pate"]))
    learnt = []
    monkeypatch.setattr(
        federation, "distill", lambda targets, loss, images: learnt.append((targets, images))
    )
    FedKDGong().fit(federation)
    ((labels, images),) = learnt
    chosen = federation.streams.shuffling("queries").shuffled(6)[:4]
    outputs = torch.stack([federation.public_outputs(m)[chosen] for m in federation.local_models()])
    counts = histogram(outputs)
    assert all(counts[n, label] == counts[n].max() for n, label in enumerate(labels))
    assert torch.equal(images, federation.public.images[chosen])


@pytest.mark.parametrize(
    ("plan", "kinds", "least"),
    [
        (PrivacyPlan("pate", epsilon=3.0, queries=100), {"votes"}, 2.9),
        (PrivacyPlan("dp-sgd", epsilon=8.0), {"logits", "labels"}, 7.5),
    ],
)
def test_in_private_votes_leave_a_client_or_answers_of_private_teachers(plan, kinds, least):
    protection = Protection(plan, FedKDGong.protected[plan.mechanism])
    federation = make_federation(3, protection=protection)
    FedKDGong().fit(federation)
    assert {t.kind for t in federation.channel.ledger} == kinds
    if kinds == {"votes"}:  # there are six public images to vote on
        assert {t.bytes for t in federation.channel.ledger} == {size("votes", 6, CLASSES)}
    for client in range(3):
        assert least < protection.accountant.epsilon(client) <= plan.epsilon
