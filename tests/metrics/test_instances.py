"""Objects: the three classes, how objects are recovered, AJI, object Dice and object Hausdorff
distance, by hand on drawn maps and equal to plain computations on random ones.
"""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage
from skimage.measure import label, regionprops
from skimage.morphology import dilation, disk
from skimage.segmentation import relabel_sequential

from fedtables.metrics.instances import aji, instances_of, object_dice, object_hausdorff, ternary

MEASURES = (aji, object_dice, object_hausdorff)


def drawn(picture):
    """A label map (h, w) or a map of classes: a digit for each pixel, 0 where there is a dot."""
    return np.array([[int(c.replace(".", "0")) for c in row] for row in picture.split()])


def blobs(seed, side=40, objects=8, largest=9):
    """A map of rectangles, later ones over earlier ones, some of them hidden."""
    rng = np.random.default_rng(seed)
    labels = np.zeros((side, side), dtype=np.int32)
    for number in range(1, rng.integers(0, objects + 1) + 1):
        top, left = rng.integers(0, side - 1, 2)
        height, width = rng.integers(1, largest + 1, 2)
        labels[top : top + height, left : left + width] = number
    return labels


def test_ternary_of_two_squares_that_touch():
    labels = drawn("........ .111222. .111222. .111222. ........")
    expected = drawn(".222222. 22222222 22122122 22222222 .222222.")
    assert ternary(torch.tensor(labels)[None]).tolist() == [expected.tolist()]


def test_at_the_edge_of_the_image_there_is_no_boundary():
    labels = torch.tensor(np.stack([drawn("111 111"), drawn("11. 111")]), dtype=torch.int32)
    assert ternary(labels).tolist() == [drawn("111 111").tolist(), drawn("122 112").tolist()]
    assert ternary(labels).dtype == torch.int64


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6))
def test_boundary_is_where_dilation_and_erosion_differ(seed):
    labels = np.stack([blobs(seed), blobs(seed + 1)])
    cross = ndimage.generate_binary_structure(2, 1)[None]
    grown, shrunk = (
        f(labels, footprint=cross) for f in (ndimage.grey_dilation, ndimage.grey_erosion)
    )
    expected = np.where(grown != shrunk, 2, labels > 0)
    assert np.array_equal(ternary(torch.tensor(labels)).numpy(), expected)


def test_objects_of_a_drawn_map_of_classes():
    # Of pieces that share sides the one of 3 pixels goes, and that of 1. Those of 4 stay; two that
    # touch at a corner are one object. Grown, the second goes over the first.
    classes = drawn("11......1 11.....11 ..112.... ..112.... ......... .1111...1")
    alone = drawn("11....... 11....... ..11..... ..11..... ......... .2222....")
    grown = drawn("111...... 1111..... 11111.... .1111.... .2222.... 222222...")
    assert np.array_equal(instances_of(classes, minimum=4, radius=0), alone)
    assert np.array_equal(instances_of(classes, minimum=4, radius=1), grown)
    assert not instances_of(classes).any()


def released_instances(classes, minimum, radius):
    """As the authors' code has it, with small pieces removed one by one."""
    inside = classes == 1
    for piece in regionprops(label(inside, connectivity=1)):
        if piece.area < minimum:
            inside[tuple(piece.coords.T)] = False
    return relabel_sequential(dilation(label(inside), disk(radius)))[0]


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 20), st.integers(0, 3))
def test_objects_are_those_of_the_released_code(seed, minimum, radius):
    classes = ternary(torch.tensor(blobs(seed, objects=20))[None])[0].numpy()
    expected = released_instances(classes, minimum, radius)
    assert np.array_equal(instances_of(classes, minimum, radius), expected)


def test_aji_of_one_prediction_over_two_objects():
    # Two squares of 4 pixels, and 10 pixels over both. In print the first has it: 4 of 14, and the
    # second square is added to the union. The released code gives it to both: 8 of 10 + 10.
    truth = drawn("11.22. 11.22.")
    pred = drawn("11111. 11111.")
    assert aji(pred, truth) == 4 / (10 + 4)
    assert aji(pred, truth, reuse=True) == 8 / 20


def test_in_aji_an_object_that_is_missed_is_added_and_by_the_released_code_also_prediction_one():
    truth, pred = drawn("11.22."), drawn("11...3")
    assert aji(pred, truth) == 2 / (2 + 2 + 1)
    # The second true object gets the first prediction, whose 2 pixels are added once more.
    assert aji(pred, truth, reuse=True) == 2 / (2 + (2 + 2) + 1)
    # The first prediction is nobody's no longer, and counts with the second object alone.
    assert aji(drawn("33...1"), truth, reuse=True) == 2 / (2 + (2 + 1))


NOTHING, ONE = drawn("... ... ..."), drawn("... .1. ...")


def test_no_prediction_and_no_object():
    for pred, truth in ((NOTHING, ONE), (ONE, NOTHING)):
        assert aji(pred, truth) == aji(pred, truth, reuse=True) == object_dice(pred, truth) == 0
        assert object_hausdorff(pred, truth) == math.sqrt(18)  # the diagonal of 3 x 3 pixels
    assert all(math.isnan(measure(NOTHING, NOTHING)) for measure in MEASURES)
    assert aji(NOTHING, NOTHING, reuse=True) == 0


def test_object_dice_by_hand():
    # Objects of 4 and 6 pixels and 8 predicted ones, 2 in the first: Dice 4/12 and 12/14.
    value = object_dice(drawn("..11111111"), drawn("1111222222"))
    assert value == pytest.approx((0.4 * 4 / 12 + 0.6 * 12 / 14 + 12 / 14) / 2)


def test_a_match_is_by_jaccard():
    # 11 predicted pixels: 6 of an object of 20, 5 of one of 5.
    truth, pred = drawn(20 * "1" + 5 * "2"), drawn(14 * "." + 11 * "1")
    of_truth = (20 * 12 / 31 + 5 * 10 / 16) / 25
    assert object_dice(pred, truth) == pytest.approx((of_truth + 10 / 16) / 2)


def test_object_hausdorff_of_an_object_that_is_missed():
    # The first is found, and the second compared with the nearest there is, 10 pixels off.
    truth, pred = drawn("1.........2"), drawn("1..........")
    assert object_hausdorff(pred, truth) == (0 + 10) / 2 / 2
    assert object_hausdorff(truth, pred) == 2.5


def test_the_quantile_of_object_hausdorff():
    # As many zeros as in the masks of 19 and 20 pixels, one of them 82 off.
    truth, pred = drawn(19 * "1" + 82 * "."), drawn(19 * "1" + 81 * "." + "1")
    assert object_hausdorff(pred, truth) == pytest.approx(0.05 * 82)
    assert object_hausdorff(pred, truth, quantile=100) == 82


def plain_aji(pred, truth, reuse):
    """Mask by mask."""
    truths = [truth == number for number in np.unique(truth[truth > 0])]
    preds = [pred == number for number in np.unique(pred[pred > 0])]
    if reuse and not preds:
        return 0.0
    table = {
        (t, p): (a & b).sum() / (a | b).sum()
        for t, a in enumerate(truths)
        for p, b in enumerate(preds)
    }
    if reuse:
        taken = {t: max(range(len(preds)), key=lambda p: table[t, p]) for t in range(len(truths))}
    else:
        taken, used = {}, set()
        for t, p in sorted(table, key=lambda pair: (-table[pair], pair)):
            if table[t, p] > 0 and t not in taken and p not in used:
                taken[t] = p
                used.add(p)
    shared = union = 0
    for t, mask in enumerate(truths):
        other = preds[taken[t]] if t in taken else np.zeros_like(mask)
        shared += (mask & other).sum()
        union += (mask | other).sum()
    union += sum(mask.sum() for p, mask in enumerate(preds) if p not in taken.values())
    return shared / union if union else math.nan


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6), st.booleans())
def test_aji_is_that_of_a_plain_loop(seed, reuse):
    pred, truth = blobs(seed), blobs(seed + 1)
    expected = plain_aji(pred, truth, reuse)
    assert aji(pred, truth, reuse) == pytest.approx(expected, nan_ok=True)


def plain_object_hausdorff(pred, truth, quantile):
    """Every object against every other."""

    def contours(labels):
        masks = [labels == number for number in np.unique(labels[labels > 0])]
        return masks, [np.argwhere(mask & ~ndimage.binary_erosion(mask)) for mask in masks]

    def mean(ours, theirs):
        total = 0.0
        for mask, points in zip(*ours, strict=True):
            scores = [(mask & m).sum() / (mask | m).sum() for m in theirs[0]]
            distances = []
            for others in theirs[1]:
                table = np.linalg.norm(points[:, None] - others, axis=-1)
                directed = table.min(axis=1), table.min(axis=0)
                distances.append(max(np.percentile(one, quantile) for one in directed))
            best = distances[int(np.argmax(scores))] if any(scores) else min(distances)
            total += mask.sum() * best
        return total / sum(mask.sum() for mask in ours[0])

    sides = contours(truth), contours(pred)
    if not all(points for _, points in sides):
        return math.hypot(*truth.shape) if any(points for _, points in sides) else math.nan
    return (mean(*sides) + mean(*sides[::-1])) / 2


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6), st.sampled_from([50, 95, 100]))
def test_object_hausdorff_is_that_of_every_object_against_every_other(seed, quantile):
    pred, truth = blobs(seed), blobs(seed + 1)
    expected = plain_object_hausdorff(pred, truth, quantile)
    value = object_hausdorff(pred, truth, quantile)
    assert value == pytest.approx(expected, nan_ok=True)


def test_other_shapes_types_and_matches_are_refused():
    for measure in MEASURES:
        with pytest.raises(ValueError, match="of one shape"):
            measure(ONE, ONE[:2])
        with pytest.raises(ValueError, match="integers from 0 on"):
            measure(ONE, ONE - 1)
        with pytest.raises(ValueError, match="integers from 0 on"):
            measure(ONE / 1, ONE)
    with pytest.raises(ValueError, match=r"expected label maps \(n, h, w\)"):
        ternary(torch.tensor(ONE))
