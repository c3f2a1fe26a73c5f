"""Counts of pixels, what is computed of them, and HD95: by hand on drawn masks, where they are
empty, and equal to MONAI's, torchmetrics' and a plain computation on random ones.
"""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from monai.metrics import DiceMetric
from scipy import ndimage
from torchmetrics.classification import MulticlassJaccardIndex
from torchmetrics.functional.classification import binary_recall, binary_specificity

from fedtables.metrics.masks import confusions, counts, dice, hd95, mean_iou, pointing_hits, shares


def drawn(*pictures):
    """Masks (n, h, w), True at each #."""
    return torch.tensor([[[c == "#" for c in row] for row in p.split()] for p in pictures])


def row(*columns, width=120):
    """A mask (1, 3, width) with those columns of the middle row."""
    mask = torch.zeros(1, 3, width, dtype=torch.bool)
    mask[0, 1, list(columns)] = True
    return mask


def random_masks(seed, *shape, share=0.5):
    rng = torch.Generator().manual_seed(seed)
    return (torch.rand(shape, generator=rng) < share for _ in range(2))


PREDICTED = drawn(".##. .##. ....")
TRUTH = drawn(".... .### .###")


def test_shares_of_a_drawn_mask():
    # 5 pixels in neither, 2 in the prediction alone, 4 in the truth alone, 2 in both.
    counted = counts(PREDICTED, TRUTH)
    assert counted.tolist() == [[[4, 2], [4, 2]]]
    found = {name: values.tolist() for name, values in shares(counted).items()}
    assert found == {"dice": [2 * 2 / (4 + 6)], "sensitivity": [2 / 6], "specificity": [4 / 6]}


EMPTY, FULL, SOME = drawn(".. .."), drawn("## ##"), drawn("#. ..")


@pytest.mark.parametrize(
    ("predicted", "truth", "printed"),
    [
        (EMPTY, EMPTY, (math.nan, math.nan, 1)),
        (SOME, EMPTY, (0, math.nan, 3 / 4)),
        (EMPTY, SOME, (0, 0, 1)),
        (FULL, FULL, (1, 1, math.nan)),
        (SOME, FULL, (2 / 5, 1 / 4, math.nan)),
    ],
)
def test_of_empty_and_full_masks_the_released_code_makes_zeros(predicted, truth, printed):
    counted = counts(predicted, truth)
    found = [share.item() for share in shares(counted).values()]
    assert found == pytest.approx(printed, nan_ok=True)
    released = [share.item() for share in shares(counted, "released").values()]
    assert released == pytest.approx([0 if math.isnan(value) else value for value in printed])


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.floats(0, 1), st.booleans())
def test_shares_are_those_of_monai_and_torchmetrics(seed, share, volumes):
    shape = (3, 2, 3, 4) if volumes else (3, 4, 5)
    predicted, truth = random_masks(seed, *shape, share=share)
    counted = counts(predicted, truth)
    assert torch.equal(counted, confusions(predicted.long(), truth.long(), 2, 255))
    monais = DiceMetric(include_background=True, reduction="none", ignore_empty=False)
    monais(predicted[:, None].float(), truth[:, None].float())
    near = {"atol": 1e-6, "rtol": 0}
    found = shares(counted)["dice"].nan_to_num(1.0)
    torch.testing.assert_close(found, monais.aggregate()[:, 0].double(), **near)
    for name, theirs in (("sensitivity", binary_recall), ("specificity", binary_specificity)):
        expected = theirs(predicted.long(), truth.long(), multidim_average="samplewise")
        torch.testing.assert_close(shares(counted, "released")[name], expected.double(), **near)


def test_the_larger_quantile_of_both_directions_and_the_quantile_of_both_pooled():
    # The prediction is the truth, 19 pixels, and one more, 82 pixels off. In print: of 20 distances
    # the 95 % quantile is 0.05 of the way from 0 to 82. Pooled: of 39 distances it is 0.
    truth = row(*range(19))
    predicted = row(*range(19), 100)
    for pair in ((predicted, truth), (truth, predicted)):
        assert hd95(*pair).tolist() == pytest.approx([0.05 * 82], abs=1e-4)
    assert hd95(predicted, truth, "released").tolist() == [0]
    # From one pixel to 20 in a row: 0.95 of the way to the last, and the 20th of 21 distances.
    assert hd95(row(*range(20)), row(0)).tolist() == pytest.approx([18.05])
    assert hd95(row(*range(20)), row(0), "released").tolist() == pytest.approx([18])


@pytest.mark.parametrize(
    ("predicted", "truth", "printed"),
    [
        (EMPTY, EMPTY, math.nan),
        (SOME, EMPTY, math.sqrt(8)),
        (EMPTY, SOME, math.sqrt(8)),
        (SOME, SOME, 0),
    ],
)
def test_hd95_of_one_empty_mask_is_the_diagonal_and_of_two_undefined(predicted, truth, printed):
    assert hd95(predicted, truth).item() == pytest.approx(printed, nan_ok=True)
    released = hd95(predicted, truth, "released").item()
    assert math.isnan(released) == (printed != 0)


def plain_hd95(predicted, truth, reading):
    """From all pairs of contour points."""
    masks = [mask.numpy() for mask in (predicted, truth)]
    released = reading == "released"
    points = [
        np.argwhere(mask & ~ndimage.binary_erosion(mask, border_value=int(released)))
        for mask in masks
    ]
    if not all(map(len, points)):
        missed = any(map(len, points)) and not released
        return math.hypot(*predicted.shape) if missed else math.nan
    distances = np.linalg.norm(points[0][:, None] - points[1], axis=-1)
    directed = distances.min(axis=1), distances.min(axis=0)
    if released:
        return np.percentile(np.concatenate(directed), 95)
    return max(np.quantile(one, 0.95) for one in directed)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.floats(0.02, 0.98), st.booleans())
@pytest.mark.parametrize("reading", ["paper", "released"])
def test_hd95_is_that_of_all_pairs_of_contour_points(reading, seed, share, volumes):
    shape = (2, 4, 5, 6) if volumes else (2, 9, 11)
    predicted, truth = random_masks(seed, *shape, share=share)
    plain = [plain_hd95(*pair, reading) for pair in zip(predicted, truth, strict=True)]
    values = hd95(predicted, truth, reading).tolist()
    assert values == pytest.approx(plain, abs=1e-5, nan_ok=True)


@pytest.mark.parametrize("measure", [counts, hd95])
def test_other_shapes_and_types_are_refused(measure):
    with pytest.raises(ValueError, match="of one shape"):
        measure(SOME, PREDICTED)
    with pytest.raises(ValueError, match="of one shape"):
        measure(SOME[0], SOME[0])
    with pytest.raises(ValueError, match="boolean masks"):
        measure(SOME, SOME.long())


# -- of several classes --

CLASSES = torch.tensor([[[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 0, 255]]])
FOUND = torch.tensor([[[0, 0, 1, 1], [0, 1, 1, 0], [0, 0, 2, 2]]])


def iou(predicted, target, classes):
    return mean_iou(confusions(predicted, target, classes, 255).sum(dim=0))


def test_pixels_are_counted_by_target_and_prediction_in_each_sample_and_in_volumes():
    # Of seven pixels of class 0 five are right, one is taken for 1 and one for 2; of four of class
    # 1 one is taken for 0.
    both = confusions(torch.cat([FOUND, CLASSES % 255]), torch.cat([CLASSES, CLASSES]), 3, 255)
    assert both.tolist() == [[[5, 1, 1], [1, 3, 0], [0, 0, 0]], [[7, 0, 0], [0, 4, 0], [0, 0, 0]]]
    assert torch.equal(confusions(FOUND[None], CLASSES[None], 3, 255), both[:1])


def test_mean_iou_of_a_drawn_mask():
    # Class 0: 5 of 8; class 1: 3 of 5; class 2 is predicted once and never right: 0 of 1.
    assert iou(FOUND, CLASSES, 3) == pytest.approx((5 / 8 + 3 / 5 + 0) / 3)


def test_dice_of_a_drawn_mask_is_without_background_and_without_classes_that_are_not_there():
    # Class 1: twice the three found of four that are there and four predicted; 2 is not there.
    assert dice(confusions(FOUND, CLASSES, 3, 255)).tolist() == [2 * 3 / (4 + 4)]
    nothing = torch.zeros(1, 2, 2, dtype=torch.long)
    assert dice(confusions(nothing + 1, nothing, 3, 255)).isnan().all()


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 7), st.integers(0, 10**6))
def test_mean_iou_is_torchmetrics_and_dice_is_monais(classes, seed):
    rng = torch.Generator().manual_seed(seed)
    predicted, target = (torch.randint(0, classes, (3, 5, 6), generator=rng) for _ in range(2))
    monais = DiceMetric(include_background=False, reduction="none")
    monais(*(torch.nn.functional.one_hot(x, classes).movedim(-1, 1) for x in (predicted, target)))
    torch.testing.assert_close(
        dice(confusions(predicted, target, classes, 255)),
        monais.aggregate().nanmean(dim=1).double(),
        equal_nan=True,
        atol=1e-6,
        rtol=0,
    )
    target[torch.rand(3, 5, 6, generator=rng) < 0.1] = 255
    theirs = MulticlassJaccardIndex(classes, average="macro", ignore_index=255)(predicted, target)
    assert iou(predicted, target, classes) == pytest.approx(float(theirs), abs=1e-6)


def test_unlabelled_images_and_wrong_classes_and_shapes_are_refused():
    with pytest.raises(ValueError, match="of no labelled pixels is undefined"):
        iou(torch.zeros(1, 2, 2, dtype=torch.long), torch.full((1, 2, 2), 255), 3)
    with pytest.raises(ValueError, match="outside of 0 to 1"):
        iou(FOUND, CLASSES, 2)
    with pytest.raises(ValueError, match="outside of 0 to 2"):
        iou(FOUND - 1, CLASSES, 3)
    with pytest.raises(ValueError, match="of one shape"):
        iou(FOUND[:, :2], CLASSES, 3)


# -- the pointing game --


def places(row, column, sides):
    """One image of `sides` with a single pixel of what is looked for."""
    there = torch.zeros(1, *sides, dtype=torch.bool)
    there[0, row, column] = True
    return there


def test_a_map_points_at_the_centre_of_its_greatest_position():
    # Of 2 x 2 positions on 8 x 8 pixels the second of the first row has its centre at row 2, column
    # 6.
    maps = torch.tensor([[[0.2, 0.9], [0.3, 0.8]]])
    assert pointing_hits(maps, places(2, 6, (8, 8))).tolist() == [True]
    assert not any(
        pointing_hits(maps, places(row, column, (8, 8)))[0]
        for row in range(8)
        for column in range(8)
        if (row, column) != (2, 6)
    )


@pytest.mark.parametrize(
    ("sides", "row", "column"), [((1, 1), 0, 0), ((2, 3), 1, 1), ((4, 4), 3, 2), ((40, 10), 30, 5)]
)
def test_grids_may_differ_in_both_sides(sides, row, column):
    # Centre of the last row and the middle of three columns.
    maps = torch.tensor([[[0.0, 0.1, 0.2], [0.0, 1.0, 0.2]]])
    assert pointing_hits(maps, places(row, column, sides)).tolist() == [True]


def test_of_equal_positions_the_first_counts_and_an_empty_map_points_nowhere():
    maps = torch.tensor([[[1.0, 1.0], [1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]])
    everywhere = torch.ones(2, 2, 2, dtype=torch.bool)
    assert pointing_hits(maps, everywhere).tolist() == [True, False]
    assert pointing_hits(maps[:1], places(0, 0, (2, 2))).tolist() == [True]
    assert pointing_hits(maps[:1], places(1, 1, (2, 2))).tolist() == [False]
