"""Teachers: their own tasks, their transfer, and how they are scored."""

from types import SimpleNamespace

import pytest
import torch

from fedtables.baselines.scratch import Scratch
from fedtables.baselines.transfer import Transfer
from fedtables.benchmarks.measures import teachers
from fedtables.benchmarks.measures.teachers import (
    MEASURES,
    first_scores,
    own_accuracies,
)
from fedtables.federation.cache import StageCache
from fedtables.federation.data import Checkpoint
from fedtables.federation.shared.amalgamation import train_weak
from fedtables.federation.training.plan import TrainingPlan
from fedtables.methods.fedsa import FedSA
from tests.federation.tiny import CLASSES, bright_images
from tests.methods.private_servers import private_servers, quick

LABELS = torch.tensor([0, 0, 0, 1, 2, 3, 3, 3, 4, 5])
"""Three teachers have two classes each: 0 and 1, 2 and 3, 4 and 5, every one as bright as the
teacher's own of the same number."""
BRIGHTNESS = (LABELS % 2 + LABELS // 2) % CLASSES


@pytest.fixture
def held_out(monkeypatch):
    """Puts these images, or those with other labels, into the place of the private test split."""
    images = bright_images(BRIGHTNESS, 7)

    def put(labels):
        source = SimpleNamespace(classes=6)
        site = SimpleNamespace(
            source=source,
            labels=lambda split: labels.numpy(),
            images=lambda split, indices, device: images[indices],
        )
        monkeypatch.setattr("fedtables.benchmarks.scenarios.sites.Site", lambda data, size: site)

    return put


def servers():
    return private_servers(3, local=TrainingPlan(epochs=40, batch_size=4, lr=0.01))


def test_each_teacher_is_asked_for_its_own_classes_by_its_own_numbers(held_out):
    federation, private = servers(), SimpleNamespace(used="six classes")
    held_out(LABELS)
    right = own_accuracies(federation, private)
    assert right == [1.0, 1.0, 1.0]
    held_out(torch.tensor([0, 0, 1, 1, 3, 3, 3, 3, 5, 4]))
    assert own_accuracies(federation, private) == [0.75, 0.75, 0.0]


@pytest.mark.parametrize(("method", "found"), [(Scratch(), 1), (Transfer(teacher=1), 2)])
def test_only_a_row_that_begins_with_a_teacher_has_the_second_number(monkeypatch, method, found):
    monkeypatch.setattr(teachers, "own_accuracies", lambda federation, private: [0.5, 0.7])
    federation = servers()
    fitted = [method.fit(federation)]
    run = SimpleNamespace(
        config={"private.name": "six"},
        federation=federation,
        fitted=fitted,
        method=method,
        metrics=("accuracy",),
        models=fitted,
        over_models="",
        percent=100,
        scale=lambda metric: 100,
        sources=(SimpleNamespace(asked="target"), SimpleNamespace(asked="six")),
    )
    measured = MEASURES["teachers"].take(run).measurements
    assert measured[0].value == pytest.approx(100 * fitted[0].history["accuracy"][-1])
    assert [(m.metric, m.value) for m in measured[1:]] == [("teacher-accuracy", 60.0)][: found - 1]


def selections(fitted):
    """What is taken of three teachers' selections."""
    run = SimpleNamespace(fitted=[fitted], config={"partition.clients": 3})
    return MEASURES["selection"].take(run).measurements


def transfer_of(federation, method, teacher, fitted, percent=1):
    """What is taken of a teacher, counted from 1, that `method` scores."""
    run = SimpleNamespace(
        federation=federation,
        other_method=lambda name: method,
        config={"evaluation.selecting": "other", "transfer.teacher": teacher},
        name="transfer",
        fitted=[fitted],
        percent=percent,
    )
    return MEASURES["transferability"].take(run)


def test_every_selection_has_a_score_scaled_over_its_teachers_and_a_count_for_each():
    history = {
        "transferability/1": [1.0, 5.0],
        "transferability/2": [3.0, 5.0],
        "transferability/3": [2.0, 5.0],
        "selected/1": [0.0, 1.0],
        "selected/2": [2.0, 1.0],
        "selected/3": [1.0, 1.0],
    }
    fitted = Checkpoint("cnn-small", 3, {}, "server", "", history)
    found = selections(fitted)
    scores = {m.column: m.value for m in found if m.metric == "transferability"}
    counts = {m.column: m.value for m in found if m.metric == "selected"}
    columns = [
        f"selection={number} teacher={teacher}" for number in (1, 2) for teacher in (1, 2, 3)
    ]
    assert list(scores) == list(counts) == columns
    assert list(scores.values()) == [0.0, 1.0, 0.5, 0.0, 0.0, 0.0]
    assert list(counts.values()) == [0.0, 2.0, 1.0, 1.0, 1.0, 1.0]


def test_they_are_of_the_target_network_before_its_first_selection():
    federation, method = private_servers(3), quick()
    target = federation.networks.initial()
    train_weak(federation, target, method.weak_epochs, 1)
    images = federation.probe().images
    sees = federation.clients[0].normalise
    own = [
        method.maps_of(sees, federation.networks.module(teacher), images)
        for teacher in federation.stages.teachers()
    ]
    scores = method.scores(own, method.maps_of(federation.normalise, target, images), 12)
    torch.testing.assert_close(method.first_scores(federation), scores)
    fitted = private_servers(3)
    method.fit(fitted)
    first = [fitted.evaluation.history[f"transferability/{n}"][0] for n in (1, 2, 3)]
    assert first == pytest.approx(scores.tolist(), rel=1e-5)


def test_all_teachers_share_one_stage_and_another_method_has_another(tmp_path):
    asked = []
    for teacher in (1, 2, 3):
        federation = private_servers(3, stages=StageCache(tmp_path))
        fitted = Transfer(teacher=teacher, frozen=True).fit(federation)
        asked.append(transfer_of(federation, quick(), teacher, fitted).measurements[1].value)
        events = [
            event.computed
            for event in federation.stages.cache.events
            if event.kind == "similarities"
        ]
        assert events == [teacher == 1]
    scores = first_scores(federation, quick())
    assert asked == pytest.approx(
        ((scores - scores.min()) / (scores.max() - scores.min())).tolist()
    )
    assert (min(asked), max(asked)) == (0, 1)
    first_scores(federation, quick(saliency="grad-cam"))
    other = private_servers(
        3, network="resnet8-narrow", teachers="cnn-small", stages=federation.stages.cache
    )
    first_scores(other, quick())
    assert [
        event.computed for event in federation.stages.cache.events if event.kind == "similarities"
    ][-2:] == [True, True]


def test_a_teacher_has_two_numbers_the_second_never_in_percent(monkeypatch):
    scores = torch.tensor([0.05, 0.0575, 0.08])
    monkeypatch.setattr(FedSA, "first_scores", lambda method, federation: scores)
    trained = Checkpoint("cnn-small", 3, {}, "server", "", {"accuracy": [0.1, 0.5]})
    taken = transfer_of(private_servers(3), quick(), 2, trained, 100)
    assert [(m.metric, m.value) for m in taken.measurements] == [
        ("transfer-accuracy", 50.0),
        ("saliency-similarity", pytest.approx(0.25)),
    ]
    assert "frozen encoder" in taken.statistic
    assert "0.6000 to 0.9600" in taken.statistic  # cosines, by the twelve probe samples of Eq. 2
