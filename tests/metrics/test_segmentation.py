"""Mean IoU and Dice: by hand on drawn masks, equal to torchmetrics' and MONAI's on random ones, and
what is refused.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from monai.metrics import DiceMetric
from torchmetrics.classification import MulticlassJaccardIndex

from metrics.segmentation import confusions, dice, mean_iou

TARGET = torch.tensor([[[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 255]]])
PREDICTED = torch.tensor([[[0, 0, 1, 1], [0, 1, 1, 0], [0, 0, 2, 2]]])


def iou(predicted, target, classes):
    return mean_iou(confusions(predicted, target, classes, 255).sum(dim=0))


def test_pixels_are_counted_by_target_and_prediction():
    # Of seven pixels of class 0 five are right, one is taken for 1 and one for 2; of four of class
    # 1 one is taken for 0.
    assert confusions(PREDICTED, TARGET, 3, 255).tolist() == [[[5, 1, 1], [1, 3, 0], [0, 0, 0]]]


def test_mean_iou_of_a_drawn_mask():
    # Class 0: 5 of 8; class 1: 3 of 5; class 2 is predicted once and never right: 0 of 1.
    assert iou(PREDICTED, TARGET, 3) == pytest.approx((5 / 8 + 3 / 5 + 0) / 3)


def test_pixels_of_all_images_count_together():
    # Of class 0 the first image has one pixel, missed, and the second three, found: 3 of 4 and not
    # the mean of 0 and 1.
    target = torch.tensor([[[0, 1], [1, 1]], [[0, 0], [0, 1]]])
    predicted = torch.tensor([[[1, 1], [1, 1]], [[0, 0], [0, 1]]])
    assert iou(predicted, target, 2) == pytest.approx((3 / 4 + 4 / 5) / 2)


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 7), st.integers(0, 10**6))
def test_mean_iou_is_torchmetrics(classes, seed):
    rng = torch.Generator().manual_seed(seed)
    predicted, target = (torch.randint(0, classes, (3, 5, 6), generator=rng) for _ in range(2))
    target[torch.rand(3, 5, 6, generator=rng) < 0.1] = 255
    theirs = MulticlassJaccardIndex(classes, average="macro", ignore_index=255)(predicted, target)
    assert iou(predicted, target, classes) == pytest.approx(float(theirs), abs=1e-6)


def test_unlabelled_images_and_wrong_classes_and_shapes_are_refused():
    with pytest.raises(ValueError, match="of no labelled pixels is undefined"):
        iou(torch.zeros(1, 2, 2, dtype=torch.long), torch.full((1, 2, 2), 255), 3)
    with pytest.raises(ValueError, match="outside of 0 to 1"):
        iou(PREDICTED, TARGET, 2)
    with pytest.raises(ValueError, match="outside of 0 to 2"):
        iou(PREDICTED - 1, TARGET, 3)
    with pytest.raises(ValueError, match="of one shape"):
        iou(PREDICTED[:, :2], TARGET, 3)


def test_samples_are_counted_by_themselves_and_volumes_as_images():
    both = confusions(torch.cat([PREDICTED, TARGET % 255]), torch.cat([TARGET, TARGET]), 3, 255)
    assert both.tolist() == [
        [[5, 1, 1], [1, 3, 0], [0, 0, 0]],
        [[7, 0, 0], [0, 4, 0], [0, 0, 0]],
    ]
    assert torch.equal(confusions(PREDICTED[None], TARGET[None], 3, 255), both[:1])


def test_dice_of_a_drawn_mask_is_without_background_and_without_classes_that_are_not_there():
    # Class 1: twice the three found of four that are there and four predicted; 2 is not there.
    assert dice(confusions(PREDICTED, TARGET, 3, 255)).tolist() == [2 * 3 / (4 + 4)]
    nothing = torch.zeros(1, 2, 2, dtype=torch.long)
    assert dice(confusions(nothing + 1, nothing, 3, 255)).isnan().all()


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 5), st.integers(0, 10**6))
def test_dice_is_monais(classes, seed):
    rng = torch.Generator().manual_seed(seed)
    predicted, target = (torch.randint(0, classes, (3, 2, 4, 3), generator=rng) for _ in range(2))
    target[0] = 0
    theirs = DiceMetric(include_background=False, reduction="none")
    theirs(*(torch.nn.functional.one_hot(x, classes).movedim(-1, 1) for x in (predicted, target)))
    torch.testing.assert_close(
        dice(confusions(predicted, target, classes, 255)),
        theirs.aggregate().nanmean(dim=1).double(),
        equal_nan=True,
        atol=1e-6,
        rtol=0,
    )
