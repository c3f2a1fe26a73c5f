"""Tasks: losses per sample, probabilities, the headline metric; targets made of annotations, and
resized.
"""

import math

import numpy as np
import pytest
import torch

from fedtables.datasets.source import CLASS, MAP, SEGMENTS, Annotation
from fedtables.federation.tasks.base import conditioned
from fedtables.federation.tasks.images import Classification, MultiLabel, placed
from fedtables.federation.tasks.pixels import Segmentation
from fedtables.federation.tasks.targets import resize_targets, targets_of, task_of
from fedtables.federation.tasks.values import DenseRegression
from fedtables.metrics.names import is_count
from fedtables.metrics.running import measured

TASK = Classification(3)
OUTPUTS = torch.tensor([[0.0, 0.0, 0.0], [math.log(2), 0.0, 0.0]])


def test_the_loss_is_cross_entropy_for_each_sample():
    # Probabilities of the second sample: 1/2, 1/4, 1/4.
    torch.testing.assert_close(
        TASK.loss(OUTPUTS, torch.tensor([1, 2])), torch.tensor([math.log(3), math.log(4)])
    )


def test_the_distillation_loss_is_cross_entropy_with_the_teachers_probabilities():
    teacher = torch.tensor([[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]])
    expected = torch.tensor([math.log(3), 0.6 * math.log(2) + 0.4 * math.log(4)])
    torch.testing.assert_close(TASK.distillation_loss(OUTPUTS, teacher), expected)


# -- segmentation --

PIXELS = Segmentation(3)
# Two images of 1 x 2 pixels; probabilities of each pixel 1/2, 1/4, 1/4, but of the last 1/3 each.
SCORES = torch.tensor(
    [
        [[[math.log(2)] * 2], [[0.0] * 2], [[0.0] * 2]],
        [[[math.log(2), 0.0]], [[0.0] * 2], [[0.0] * 2]],
    ]
)


def test_the_segmentation_loss_is_the_mean_cross_entropy_over_labelled_pixels():
    targets = torch.tensor([[[0, 1]], [[255, 2]]])
    torch.testing.assert_close(
        PIXELS.loss(SCORES, targets), torch.tensor([(math.log(2) + math.log(4)) / 2, math.log(3)])
    )


def test_an_image_without_labels_has_no_loss_and_no_gradient():
    outputs = SCORES.clone().requires_grad_()
    losses = PIXELS.loss(outputs, torch.tensor([[[255, 255]], [[0, 0]]]))
    losses.sum().backward()
    assert losses[0] == 0
    assert torch.equal(outputs.grad[0], torch.zeros(3, 1, 2))
    assert outputs.grad[1].abs().sum() > 0


def test_the_headline_metric_of_segmentation_is_the_mean_iou():
    outputs = (
        torch.nn.functional.one_hot(torch.tensor([[[0, 0]], [[1, 1]]]), 3).movedim(-1, 1).float()
    )
    # Class 0: one of two pixels; class 1: one of one, for the target of the second image's last
    # pixel is unknown.
    values = measured(PIXELS.metrics(), outputs, torch.tensor([[[0, 2]], [[1, 255]]]))
    assert next(iter(values)) == "miou"
    assert values["miou"] == pytest.approx((1 / 2 + 1 + 0) / 3)


# -- maps --


def test_a_condition_has_a_map_for_each_class_and_none_where_there_is_no_label():
    task, targets = Segmentation(3), torch.tensor([[[0, 2], [255, 2]], [[1, 1], [1, 0]]])
    conditions = task.condition(targets)
    assert conditions.shape == (2, task.condition_channels, 2, 2)
    assert conditions.dtype == torch.float32
    assert conditions[0].tolist() == [
        [[1, -1], [-1, -1]],
        [[-1, -1], [-1, -1]],
        [[-1, 1], [-1, 1]],
    ]
    assert task.pixel_counts(targets).tolist() == [2, 3, 2]
    assert conditioned(task) is task


def test_a_task_without_label_maps_has_no_conditions():
    with pytest.raises(ValueError, match=r"not DenseRegression\(channels=2\)"):
        conditioned(DenseRegression(2))


def test_regression_is_measured_by_the_absolute_error():
    task = DenseRegression(2)
    outputs = torch.tensor([[[[0.5, 0.0]], [[1.0, 1.0]]], [[[0.0, 0.0]], [[0.0, 0.0]]]])
    targets = torch.tensor([[[[0.0, 0.0]], [[1.0, 0.5]]], [[[0.0, 0.0]], [[0.0, 1.0]]]])
    torch.testing.assert_close(task.loss(outputs, targets), torch.tensor([0.25, 0.25]))
    torch.testing.assert_close(
        task.distillation_loss(outputs, targets), task.loss(outputs, targets)
    )
    assert torch.equal(task.probabilities(outputs), outputs)
    assert measured(task.metrics(), outputs, targets) == {"mean-absolute-error": 0.25}
    assert (task.outputs, task.dense) == (2, True)


@pytest.mark.parametrize("task", [TASK, PIXELS, DenseRegression(3)])
def test_metrics_are_those_that_a_task_names(task):
    shape = (2, 3, 4, 4) if task.dense else (2, 3)
    targets = (
        torch.zeros(shape)
        if task.classes is None
        else torch.zeros(shape[:1] + shape[2:], dtype=torch.int64)
    )
    names = measured(task.metrics(), torch.zeros(shape), targets)
    assert tuple(name for name in names if not is_count(name)) == task.metric_names


# -- targets --


@pytest.mark.parametrize(
    ("kind", "task"),
    [(CLASS, Classification(4)), (SEGMENTS, Segmentation(4)), (MAP, DenseRegression(4))],
)
def test_each_kind_of_annotation_has_its_task(kind, task):
    assert task_of(Annotation(kind, 4)) == task


def test_classes_become_integers_segments_bytes_and_maps_values_from_0_to_1():
    classes = targets_of(Annotation(CLASS, 3), np.array([2, 0]))
    segments = targets_of(Annotation(SEGMENTS, 3), np.array([[[2, 255]]], np.uint8))
    maps = targets_of(Annotation(MAP, 1), np.array([[[[0, 51, 255]]]], np.uint8))
    assert (classes.dtype, segments.dtype, maps.dtype) == (torch.int64, torch.uint8, torch.float32)
    assert (classes.tolist(), segments.tolist()) == ([2, 0], [[[2, 255]]])
    torch.testing.assert_close(maps, torch.tensor([[[[0.0, 0.2, 1.0]]]]))


def test_smaller_segments_take_the_middle_and_smaller_maps_the_mean():
    segments = torch.arange(36).reshape(1, 6, 6)
    assert resize_targets(segments, 2).tolist() == [[[7, 10], [25, 28]]]  # the middle of 3 x 3
    maps = torch.arange(16.0).reshape(1, 1, 4, 4)
    assert resize_targets(maps, 2).tolist() == [[[[2.5, 4.5], [10.5, 12.5]]]]


def test_larger_segments_are_repeated_and_larger_maps_interpolated():
    segments = torch.tensor([[[1, 255], [3, 4]]])
    assert resize_targets(segments, 4)[0].tolist() == [[1, 1, 255, 255]] * 2 + [[3, 3, 4, 4]] * 2
    assert resize_targets(torch.tensor([[[[0.0, 1.0], [0.0, 1.0]]]]), 4)[0, 0, 0].tolist() == [
        0.0,
        0.25,
        0.75,
        1.0,
    ]


CHEST = MultiLabel(("edema", "mass", "hernia"))


def test_the_loss_of_findings_is_the_mean_cross_entropy_over_those_that_are_known():
    # At logit 0 every finding costs ln 2; at logit ln 3 its probability is 3/4.
    outputs = torch.tensor([[0.0, 0.0, 0.0], [math.log(3), math.log(3), 7.0], [1.0, 2.0, 3.0]])
    targets = torch.tensor([[1, 0, 1], [1, 0, 255], [255, 255, 255]], dtype=torch.uint8)
    second = (-math.log(3 / 4) - math.log(1 / 4)) / 2
    torch.testing.assert_close(
        CHEST.loss(outputs, targets), torch.tensor([math.log(2), second, 0.0])
    )


def test_findings_are_distilled_by_cross_entropy_with_the_teachers_probabilities():
    teacher = torch.tensor([[0.5, 1.0, 0.0]])
    assert CHEST.probabilities(torch.zeros(1, 3)).tolist() == [[0.5, 0.5, 0.5]]
    torch.testing.assert_close(
        CHEST.distillation_loss(torch.zeros(1, 3), teacher), torch.tensor([math.log(2)])
    )


def test_the_mean_auc_is_over_findings_for_which_it_is_defined():
    outputs = torch.tensor([[2.0, 0.0, 5.0], [1.0, 1.0, 5.0]])
    targets = torch.tensor(
        [[1, 1, 1], [0, 0, 1]], dtype=torch.uint8
    )  # edema right, mass wrong, hernia without negatives
    found = {"mauc": 0.5, "mauc#defined": 2, "mauc#of": 3}
    assert measured(CHEST.metrics(), outputs, targets) == found
    assert CHEST.metric_names == ("mauc",)
    with pytest.raises(ValueError, match="no AUC is defined"):
        measured(CHEST.metrics(), outputs[:1], targets[:1])


def test_outputs_of_another_label_set_are_put_in_their_places():
    other = MultiLabel(("hernia", "edema", "fracture"))
    found = placed(torch.tensor([[1.0, 2.0, 3.0]]), other, CHEST)
    torch.testing.assert_close(found, torch.tensor([[2.0, math.nan, 1.0]]), equal_nan=True)
    outputs = torch.ones(2, 3)
    assert placed(outputs, CHEST, CHEST) is outputs
    assert placed(outputs, None, CHEST) is outputs
