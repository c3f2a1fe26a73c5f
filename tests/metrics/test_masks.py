"""Dice, sensitivity, specificity and HD95 of binary masks: by hand on drawn ones, by each rule for
empty ones, and equal to MONAI's, torchmetrics' and a plain computation on random ones.
"""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from monai.metrics import DiceMetric
from scipy import ndimage
from torchmetrics.functional.classification import binary_recall, binary_specificity

from metrics.masks import counts, dice, hd95, sensitivity, specificity
from metrics.segmentation import confusions

SHARES = (dice, sensitivity, specificity)


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
    counted = counts(drawn(".##. .##. ...."), drawn(".... .### .###"))
    assert counted.tolist() == [[[4, 2], [4, 2]]]
    assert dice(counted).tolist() == [2 * 2 / (4 + 6)]
    assert sensitivity(counted).tolist() == [2 / 6]
    assert specificity(counted).tolist() == [4 / 6]


def test_pixels_without_a_label_do_not_count():
    counted = counts(PREDICTED, TRUTH, labelled=drawn("#### #### ...."))
    assert counted.tolist() == [[[3, 2], [1, 2]]]


EMPTY, FULL, SOME = drawn(".. .."), drawn("## ##"), drawn("#. ..")


@pytest.mark.parametrize(
    ("share", "predicted", "truth", "skip", "zero", "one"),
    [
        (dice, EMPTY, EMPTY, math.nan, 0, 1),
        (dice, SOME, EMPTY, 0, 0, 0),
        (dice, EMPTY, SOME, 0, 0, 0),
        (sensitivity, EMPTY, EMPTY, math.nan, 0, 1),
        (sensitivity, SOME, EMPTY, math.nan, 0, 0),
        (sensitivity, EMPTY, SOME, 0, 0, 0),
        (specificity, FULL, FULL, math.nan, 0, 1),
        (specificity, SOME, FULL, math.nan, 0, 0),
        (specificity, EMPTY, EMPTY, 1, 1, 1),
    ],
)
def test_of_empty_and_full_masks_the_rule_decides(share, predicted, truth, skip, zero, one):
    counted = counts(predicted, truth)
    values = [share(counted, rule).item() for rule in ("skip", "zero", "one")]
    assert values == pytest.approx([skip, zero, one], nan_ok=True)


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
    torch.testing.assert_close(dice(counted, "one"), monais.aggregate()[:, 0].double(), **near)
    for ours, theirs in ((sensitivity, binary_recall), (specificity, binary_specificity)):
        expected = theirs(predicted.long(), truth.long(), multidim_average="samplewise")
        torch.testing.assert_close(ours(counted, "zero"), expected.double(), **near)


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


def test_the_edge_of_the_image_is_contour_in_print_and_not_in_the_released_code():
    # In a 5 x 5 image: from its edge to the centre the corners are farthest.
    full, centre = torch.ones(1, 5, 5, dtype=torch.bool), torch.zeros(1, 5, 5, dtype=torch.bool)
    centre[0, 2, 2] = True
    assert hd95(centre, full).tolist() == pytest.approx([math.sqrt(8)])
    assert hd95(centre, full, "released").isnan().all()
    # Of the left half the released contour is its last column alone, 4 from the pixel in column 7,
    # 8 and more from most of what else the printed one has.
    half, pixel = torch.zeros(2, 1, 3, 9, dtype=torch.bool)
    half[:, :, :4] = True
    pixel[:, 1, 7] = True
    pooled = [4, math.hypot(4, 1), math.hypot(4, 1), 4]
    assert hd95(pixel, half, "released").tolist() == pytest.approx([np.percentile(pooled, 95)])
    assert hd95(pixel, half).item() > 7


@pytest.mark.parametrize(
    ("predicted", "truth", "skip", "zero", "one"),
    [
        (EMPTY, EMPTY, math.nan, math.sqrt(8), 0),
        (SOME, EMPTY, math.sqrt(8), math.sqrt(8), math.sqrt(8)),
        (EMPTY, SOME, math.sqrt(8), math.sqrt(8), math.sqrt(8)),
        (SOME, SOME, 0, 0, 0),
    ],
)
def test_hd95_of_one_empty_mask_is_the_diagonal_and_of_two_by_rule(
    predicted, truth, skip, zero, one
):
    rules = ("skip", "zero", "one")
    values = [hd95(predicted, truth, empty=rule).item() for rule in rules]
    assert values == pytest.approx([skip, zero, one], nan_ok=True)
    released = [hd95(predicted, truth, "released", rule).item() for rule in rules]
    assert released == pytest.approx([math.nan if skip != 0 else 0] * 3, nan_ok=True)


def test_the_diagonal_of_a_brats_volume():
    predicted, truth = torch.zeros(2, 1, 240, 240, 155, dtype=torch.bool)
    predicted[0, 100, 100, 100] = True
    assert hd95(predicted, truth).item() == pytest.approx(373.1287, abs=1e-4)


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


def test_other_readings_and_rules_are_refused():
    with pytest.raises(ValueError, match="no reading 'printed'"):
        hd95(SOME, SOME, "printed")
    for share in SHARES:
        with pytest.raises(ValueError, match="no rule 'paper'"):
            share(counts(SOME, SOME), "paper")
