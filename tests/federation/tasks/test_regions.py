"""Regions of label maps: losses by hand, masks, and which metrics they have."""

import math

import pytest
import torch

from fedtables.federation.tasks.pixels import BRATS, TUMOUR, Regions

LABELS = torch.tensor([[[0, 1], [2, 4]]])
"""One image of 2 x 2 pixels: background, necrosis, oedema, enhancing tumour."""


def logit(probability):
    return math.log(probability / (1 - probability))


def test_the_challenges_regions_lie_inside_each_other():
    whole, core, enhancing = Regions(BRATS).layers(LABELS)[0]
    assert whole.tolist() == [[0, 1], [1, 1]]
    assert core.tolist() == [[0, 1], [0, 1]]
    assert enhancing.tolist() == [[0, 0], [0, 1]]


def test_pixels_are_counted_by_region_and_of_one_outside_too():
    assert Regions(BRATS).pixel_counts(LABELS).tolist() == [3, 2, 1]
    assert Regions(TUMOUR).pixel_counts(LABELS.clamp(max=1)).tolist() == [1, 3]


def test_the_loss_is_cross_entropy_and_one_minus_dice_by_hand():
    # Probabilities 0.5 everywhere, two of four pixels inside.
    outputs, targets = torch.zeros(1, 1, 2, 2), torch.tensor([[[1, 1], [0, 0]]])
    entropy = Regions(TUMOUR, cross_entropy=1, dice=0)
    assert entropy.loss(outputs, targets).tolist() == pytest.approx([math.log(2)])
    overlap = Regions(TUMOUR, cross_entropy=0, dice=1)
    # 1 - (2 * 1 + 1) / (2 + 2 + 1)
    assert overlap.loss(outputs, targets).tolist() == pytest.approx([0.4])
    both = Regions(TUMOUR, cross_entropy=2, dice=3)
    assert both.loss(outputs, targets).tolist() == pytest.approx([2 * math.log(2) + 3 * 0.4])


def test_pixels_without_a_label_do_not_count():
    outputs = torch.tensor([[[[logit(0.8), 30.0], [logit(0.4), -30.0]]]])
    targets = torch.tensor([[[1, 255], [0, 255]]])
    seen = Regions(TUMOUR, cross_entropy=1, dice=0).loss(outputs, targets)
    assert seen.tolist() == pytest.approx([-(math.log(0.8) + math.log(0.6)) / 2])
    overlap = Regions(TUMOUR, cross_entropy=0).loss(outputs, targets)
    assert overlap.tolist() == pytest.approx([1 - (2 * 0.8 + 1) / (1.2 + 1 + 1)])


@pytest.mark.parametrize("task", [Regions(TUMOUR), Regions(BRATS)])
def test_the_metrics_have_the_names_that_the_task_says(task):
    metrics = task.metrics()
    targets = torch.tensor([[[[4, 2], [1, 0]], [[4, 2], [1, 0]]]])
    targets = targets if task.outputs == 3 else targets[:, 0].clamp(max=1)
    masks = task.layers(targets)
    metrics.update(20 * masks - 10, targets)
    found = metrics.compute()
    assert set(task.metric_names) <= set(found)
    assert next(iter(found)) == task.metric_names[0] == "dice"
    assert found["dice"] == pytest.approx(1)


def test_the_released_reading_reaches_the_metrics_of_several_regions():
    targets = torch.tensor([[[0, 2]]])  # no core and no enhancing tumour, which are predicted
    outputs = torch.tensor([-9.0, 9.0]).repeat(1, 3, 1, 1)
    found = {}
    for reading in ("paper", "released"):
        metrics = Regions(BRATS, reading=reading).metrics()
        metrics.update(outputs, targets)
        found[reading] = metrics.compute()["dice"]
    assert found == {"paper": pytest.approx(1 / 3), "released": 1}
