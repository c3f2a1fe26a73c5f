"""How good teachers are at their own tasks, on images that none of them has learnt from."""

from types import SimpleNamespace

import pytest
import torch

from baselines.scratch import Scratch
from baselines.transfer import Transfer
from benchmarks.measures import teachers
from benchmarks.measures.teachers import MEASURES, own_accuracies
from federation.training.plan import TrainingPlan
from tests.federation.tiny import CLASSES, bright_images
from tests.methods.private_servers import private_servers

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
        monkeypatch.setattr("benchmarks.scenarios.sites.Site", lambda data, size: site)

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
