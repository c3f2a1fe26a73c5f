"""Measuring batch by batch: the same as of all outputs at once, which are never held."""

import math
import weakref

import pytest
import torch
from torch import nn

from fedtables.federation.costs import Meter, metering
from fedtables.federation.data import LabelledSet
from fedtables.federation.tasks.images import Classification, MultiLabel
from fedtables.federation.tasks.pixels import Segmentation
from fedtables.federation.tasks.values import DenseRegression
from fedtables.federation.training import loops
from fedtables.federation.training.inputs import Normalisation
from fedtables.federation.training.loops import evaluate, predict
from fedtables.metrics.running import measured

NORMALISE = Normalisation((0.5,), (0.25,))
GENERATOR = torch.Generator().manual_seed(3)
COUNT = 620
"""More than go through a network at once."""


def samples(*sides):
    return torch.randint(0, 256, (COUNT, 1, *sides), dtype=torch.uint8, generator=GENERATOR)


def classes(count, *sides):
    return torch.randint(count, (COUNT, *sides), generator=GENERATOR)


GROUPS = classes(9)


def case(kind):
    """A task, a network for it, stored samples and targets."""
    if kind == "classification":
        model = nn.Sequential(nn.Flatten(), nn.Linear(30, 3))
        return Classification(3), model, samples(5, 6), classes(3)
    if kind == "findings":
        model = nn.Sequential(nn.Flatten(), nn.Linear(30, 2))
        return MultiLabel(("mass", "edema")), model, samples(5, 6), classes(2, 2).to(torch.uint8)
    if kind == "segmentation":
        return Segmentation(3), nn.Conv2d(1, 3, 3, padding=1), samples(5, 6), classes(3, 5, 6)
    if kind == "volumes":
        model = nn.Conv3d(1, 3, 3, padding=1)
        return Segmentation(3), model, samples(3, 5, 6).float(), classes(3, 3, 5, 6)
    targets = torch.rand(COUNT, 2, 5, 6, generator=GENERATOR)
    return DenseRegression(2), nn.Conv2d(1, 2, 3, padding=1), samples(5, 6), targets


@pytest.mark.parametrize("kind", ["classification", "findings", "segmentation", "volumes", "map"])
@pytest.mark.parametrize("groups", [None, GROUPS])
def test_a_set_measured_batch_by_batch_has_the_metrics_of_all_its_outputs(kind, groups):
    task, model, images, targets = case(kind)
    outputs = predict(model, images, normalise=NORMALISE)
    whole = measured(task.metrics(), outputs, targets, groups)
    assert evaluate(model, LabelledSet(images, targets, "", groups), task, NORMALISE) == whole
    assert list(whole)[:1] == list(task.metric_names)


def test_no_more_than_one_batch_of_outputs_is_there_at_a_time(monkeypatch):
    task, model, images, targets = case("segmentation")
    monkeypatch.setattr(loops, "AT_ONCE", {"cpu": (8, 10**6)})
    alive, most = weakref.WeakSet(), 0

    class Watched(nn.Module):
        def forward(self, inputs):
            nonlocal most
            outputs = model(inputs)
            alive.add(outputs)
            most = max(most, len(alive))
            return outputs

    evaluate(Watched(), LabelledSet(images, targets, "", GROUPS), task, NORMALISE)
    assert most == 1
    assert not alive


def test_a_plan_books_all_images_and_measures_nothing():
    task, _, images, targets = case("volumes")
    with metering(Meter()) as meter, torch.device("meta"):
        planned = nn.Conv3d(1, 3, 3, padding=1)
        found = evaluate(planned, LabelledSet(images.to("meta"), targets, ""), task, NORMALISE)
    assert found == {}
    assert meter.work.predicted_samples == COUNT
    assert meter.work.flops == COUNT * 2 * math.prod((3, 27, 3 * 5 * 6))
