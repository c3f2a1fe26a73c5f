"""Mean IoU: by hand on drawn masks, equal to torchmetrics' on random ones, and what is refused."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torchmetrics.classification import MulticlassJaccardIndex

from metrics.segmentation import confusion, mean_iou

TARGET = torch.tensor([[[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 255]]])
PREDICTED = torch.tensor([[[0, 0, 1, 1], [0, 1, 1, 0], [0, 0, 2, 2]]])


def test_pixels_are_counted_by_target_and_prediction():
    # Of seven pixels of class 0 five are right, one is taken for 1 and one for 2; of four of class
    # 1 one is taken for 0.
    assert confusion(PREDICTED, TARGET, 3).tolist() == [[5, 1, 1], [1, 3, 0], [0, 0, 0]]


def test_mean_iou_of_a_drawn_mask():
    # Class 0: 5 of 8; class 1: 3 of 5; class 2 is predicted once and never right: 0 of 1.
    assert mean_iou(PREDICTED, TARGET, 3) == pytest.approx((5 / 8 + 3 / 5 + 0) / 3)


def test_classes_that_occur_nowhere_do_not_count():
    assert mean_iou(PREDICTED, TARGET, 9) == mean_iou(PREDICTED, TARGET, 3)


def test_what_is_predicted_for_an_unlabelled_pixel_does_not_count():
    other = PREDICTED.clone()
    other[0, 2, 3] = 77
    assert mean_iou(other, TARGET, 3) == mean_iou(PREDICTED, TARGET, 3)


def test_pixels_of_all_images_count_together():
    # Of class 0 the first image has one pixel, missed, and the second three, found: 3 of 4 and not
    # the mean of 0 and 1.
    target = torch.tensor([[[0, 1], [1, 1]], [[0, 0], [0, 1]]])
    predicted = torch.tensor([[[1, 1], [1, 1]], [[0, 0], [0, 1]]])
    assert mean_iou(predicted, target, 2) == pytest.approx((3 / 4 + 4 / 5) / 2)


def test_a_third_is_exact_in_double_precision():
    assert mean_iou(torch.tensor([[[0, 0, 0]]]), torch.tensor([[[0, 1, 1]]]), 2) == pytest.approx(
        1 / 6, abs=1e-16
    )


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 7), st.integers(0, 10**6))
def test_mean_iou_is_torchmetrics(classes, seed):
    rng = torch.Generator().manual_seed(seed)
    predicted, target = (torch.randint(0, classes, (3, 5, 6), generator=rng) for _ in range(2))
    target[torch.rand(3, 5, 6, generator=rng) < 0.1] = 255
    theirs = MulticlassJaccardIndex(classes, average="macro", ignore_index=255)(predicted, target)
    assert mean_iou(predicted, target, classes) == pytest.approx(float(theirs), abs=1e-6)


def test_unlabelled_images_and_wrong_classes_and_shapes_are_refused():
    with pytest.raises(ValueError, match="of no labelled pixels is undefined"):
        mean_iou(torch.zeros(1, 2, 2, dtype=torch.long), torch.full((1, 2, 2), 255), 3)
    with pytest.raises(ValueError, match="outside of 0 to 1"):
        mean_iou(PREDICTED, TARGET, 2)
    with pytest.raises(ValueError, match="outside of 0 to 2"):
        mean_iou(PREDICTED - 1, TARGET, 3)
    with pytest.raises(ValueError, match="of one shape"):
        mean_iou(PREDICTED[:, :2], TARGET, 3)
