"""Running metrics of masks: by hand by sample and by group, in both readings, and the same however
the samples are cut into batches.
"""

import math

import numpy as np
import pytest
import torch

from fedtables.metrics.running import measured
from fedtables.metrics.running_masks import BinaryOverlap, NucleiOverlap, RegionOverlap


def pixels(*pictures):
    """Integers (n, h, w): a digit for each pixel, 0 where there is a dot, 255 at each ?."""
    values = {".": 0, "?": 255}
    return torch.tensor(
        [
            [[values.get(c) if c in values else int(c) for c in row] for row in p.split()]
            for p in pictures
        ]
    )


def logits(picture):
    """(1, 1, h, w): 0.9 at each 9, 0.3 at each 3, else -1."""
    return torch.tensor(
        [[[[{"9": 0.9, "3": 0.3}.get(c, -1.0) for c in row] for row in picture.split()]]]
    )


# Two slices of one patient and one of another, which has nothing.
OUTPUTS = torch.cat([logits("99.. ...."), logits("93.. ...9"), logits(".... ....")])
TARGETS = pixels("1... ....", "11.. ...?", ".... ....")
PATIENTS = torch.tensor([5, 5, 2])


def test_shares_and_distance_of_one_object_by_hand():
    values = measured(BinaryOverlap(255), OUTPUTS, TARGETS, PATIENTS)
    # Of the first: 1 of 1 found, 1 of 7 too many. Of the second all, for one pixel has no label.
    assert values["dice"] == pytest.approx((2 / 3 + 1) / 2)
    assert values["sensitivity"] == 1
    assert values["specificity"] == pytest.approx((6 / 7 + 1 + 1) / 3)
    # The farther of the first's two pixels is 1 off: 0.95 of the way from 0 to 1.
    assert values["hd95"] == pytest.approx(0.95 / 2)
    assert values["dice-by-group"] == 2 * 3 / (4 + 3)
    assert values["sensitivity-by-group"] == 1
    assert values["specificity-by-group"] == pytest.approx((11 / 12 + 1) / 2)
    shares = ["dice", "sensitivity", "specificity"]
    names = [*shares, "hd95", *(f"{name}-by-group" for name in shares)]
    assert [*values] == names + [f"{name}#{count}" for name in names for count in ("defined", "of")]
    # The third slice has nothing in truth and prediction, and its patient no other.
    assert [counts(values, name) for name in names] == [
        *((2, 3), (2, 3), (3, 3), (2, 3)),
        *((1, 2), (1, 2), (2, 2)),
    ]


def counts(values, name):
    return values[f"{name}#defined"], values[f"{name}#of"]


def test_who_marks_almost_nothing_has_no_better_distance_than_who_marks_all():
    # Of two slices one is right, the other not marked: the miss costs the diagonal of 2 x 4.
    outputs = torch.cat([logits("9... ...."), logits(".... ....")])
    truth = pixels("1... ....", "11.. ....")
    values = measured(BinaryOverlap(255), outputs, truth)
    assert values["hd95"] == pytest.approx((0 + math.sqrt(20)) / 2)
    assert counts(values, "hd95") == (2, 2)
    released = measured(BinaryOverlap(255, "released"), outputs, truth)
    assert released["hd95"] == 0
    assert counts(released, "hd95") == (1, 2)


def test_a_mask_whose_logits_are_not_numbers_overlaps_nothing_and_costs_the_diagonal():
    nothing = torch.full((1, 1, 2, 4), math.nan)
    for truth in (pixels("11.. ...."), pixels(".... ....")):
        values = measured(BinaryOverlap(255), nothing, truth)
        assert (values["dice"], values["specificity"], values["hd95"]) == (0, 0, math.sqrt(20))
    values = measured(RegionOverlap({"organ": [1]}, 255), nothing, pixels(".... ...."))
    assert (values["dice"], counts(values, "dice")) == (0, (1, 1))
    values = measured(NucleiOverlap(), nothing.expand(1, 3, 2, 4), pixels(".... ...."))
    found = [values[name] for name in ("dice", "obj-dice", "aji", "hd95")]
    assert found == [0, 0, 0, math.sqrt(20)]


def test_empty_slices_count_as_nothing_by_the_released_reading():
    values = measured(BinaryOverlap(255, "released"), OUTPUTS, TARGETS, PATIENTS)
    assert values["dice"] == pytest.approx((2 / 3 + 1) / 3)
    assert values["sensitivity"] == pytest.approx(2 / 3)
    assert values["dice-by-group"] == pytest.approx(3 / 7)


def test_the_released_reading_takes_hd95_of_other_masks_than_dice():
    # 0.3 is above a probability of 0.5, and not above a raw logit of 0.5: one pixel of two is left,
    # and of the three distances 0, 0 and 1 the 95th percentile is 0.9. The first slice has it too.
    values = measured(BinaryOverlap(255, "released"), OUTPUTS, TARGETS)
    assert values["hd95"] == pytest.approx(0.9)
    assert values["dice"] == pytest.approx((2 / 3 + 1) / 3)


def classes(*maps):
    """Logits (n, 3, h, w) of maps of classes."""
    return torch.nn.functional.one_hot(torch.cat(maps), 3).movedim(-1, 1).float()


# Two objects of 3 x 4 pixels with 3 columns between them; both found, one found, and none there.
NUCLEI = pixels(*[" ".join(3 * ["1111...2222"])] * 2, " ".join(3 * ["..........."]))
FOUND = torch.cat([NUCLEI[:1].clamp(max=1), NUCLEI[1:2] % 2, NUCLEI[2:]])


def nuclei(found=FOUND, truth=NUCLEI, groups=None, **settings):
    settings = {"minimum": 1, "radius": 0, **settings}
    return measured(NucleiOverlap(**settings), classes(found), truth, groups)


def test_nuclei_by_hand():
    # The second image has 12 of 24 pixels and nothing else. Its other object is 7 columns off.
    values = nuclei(groups=torch.tensor([1, 1, 8]))
    assert [*values][:4] == ["dice", "obj-dice", "aji", "hd95"]
    assert values["dice"] == pytest.approx((1 + 2 / 3) / 2)
    assert values["obj-dice"] == pytest.approx((1 + (1 / 2 + 1) / 2) / 2)
    assert values["aji"] == pytest.approx((1 + 1 / 2) / 2)
    assert values["hd95"] == pytest.approx((0 + 7 / 2 / 2) / 2)
    for name in ("dice", "obj-dice", "aji", "hd95"):
        assert values[f"{name}-by-group"] == values[name]


@pytest.mark.parametrize("distance", ["objects", "mask"])
def test_nuclei_that_are_all_missed_cost_the_diagonal(distance):
    values = nuclei(torch.zeros_like(NUCLEI[:1]), NUCLEI[:1], distance=distance)
    assert values["dice"] == values["obj-dice"] == values["aji"] == 0
    assert values["hd95"] == pytest.approx(math.hypot(3, 11))
    released = {"distance": distance, "reading": "released"}
    values = nuclei(torch.zeros_like(NUCLEI[:1]), NUCLEI[:1], **released)
    assert math.isnan(values["hd95"]) == (distance == "mask")


def test_one_prediction_over_two_nuclei_in_both_readings():
    both = torch.ones_like(NUCLEI[:1])
    assert nuclei(both, NUCLEI[:1])["aji"] == 12 / (33 + 12)
    assert nuclei(both, NUCLEI[:1], reading="released")["aji"] == 24 / 66


def test_the_released_reading_takes_pieces_for_nuclei():
    # Two pieces of one number: in print one object, of which one prediction has half, and the
    # other prediction is nobody's.
    pieces = NUCLEI[:1].clamp(max=1)
    assert nuclei(pieces, pieces)["aji"] == 12 / (24 + 12)
    assert nuclei(pieces, pieces, reading="released")["aji"] == 1


def test_hd95_of_the_mask_of_all_nuclei():
    # All contours, of 10 pixels each: of the second image's truth half lie 4 to 7 columns off.
    offs = np.sort([4, 4, 4, 5, 5, 6, 6, 7, 7, 7] + 10 * [0])
    values = nuclei(FOUND[1:2], NUCLEI[1:2], distance="mask")
    assert values["hd95"] == pytest.approx(np.quantile(offs, 0.95))


BRATS = {"whole-tumour": (1, 2, 4), "tumour-core": (1, 4), "enhancing": (4,)}
VOLUMES = pixels("1244 ....", "22.. ....", ".... ....")[:, None]
CHANNELS = (
    torch.stack(
        [
            pixels("1111 1...", "1... ....", ".... ....")[:, None],
            pixels("1.11 ....", ".... ....", ".... ...1")[:, None],
            pixels("..1. ....", ".... ....", ".... ....")[:, None],
        ],
        dim=1,
    ).float()
    - 0.5
)


def test_regions_by_hand():
    values = measured(RegionOverlap(BRATS, 255), CHANNELS, VOLUMES, torch.tensor([6, 6, 7]))
    assert values["dice-whole-tumour"] == pytest.approx((2 * 4 / 9 + 2 / 3) / 2)
    # The third has one pixel of core that is not there, the second neither; only the first has
    # enhancing tumour, and half of it is found.
    assert values["dice-tumour-core"] == pytest.approx((1 + 0) / 2)
    assert values["dice-enhancing"] == pytest.approx(2 / 3)
    assert values["dice"] == pytest.approx(((8 / 9 + 2 / 3) / 2 + 1 / 2 + 2 / 3) / 3)
    assert values["dice-whole-tumour-by-group"] == pytest.approx(2 * 5 / (6 + 6))
    assert values["dice-tumour-core-by-group"] == pytest.approx((1 + 0) / 2)
    assert values["dice-by-group"] == pytest.approx((10 / 12 + 1 / 2 + 2 / 3) / 3)
    names = [name for name in values if "#" not in name]
    assert names[:4] == ["dice", "dice-whole-tumour", "dice-tumour-core", "dice-enhancing"]
    # Of three volumes and regions, nine together, the second and third lack what they should.
    assert [counts(values, name) for name in names[:4]] == [(5, 9), (2, 3), (2, 3), (1, 3)]
    assert [counts(values, f"{name}-by-group") for name in names[:4]] == [
        *((4, 6), (1, 2), (2, 2), (1, 2))
    ]


def test_a_region_that_a_volume_lacks_is_left_out_by_the_released_reading():
    values = measured(RegionOverlap(BRATS, 255, "released"), CHANNELS, VOLUMES)
    # The third volume has no core, of which one pixel is found: 0 above, and left out here.
    assert values["dice-tumour-core"] == pytest.approx(1)
    assert counts(values, "dice-tumour-core") == (1, 3)
    assert values["dice-whole-tumour"] == pytest.approx((2 * 4 / 9 + 2 / 3) / 2)


def test_other_shapes_are_refused():
    for metrics, outputs in (
        (BinaryOverlap(255), torch.zeros(3, 2, 2, 4)),
        (NucleiOverlap(), torch.zeros(3, 1, 2, 4)),
        (RegionOverlap(BRATS, 255), torch.zeros(3, 2, 2, 4)),
    ):
        with pytest.raises(ValueError, match="expected logits"):
            metrics.update(outputs, TARGETS)


def test_volumes_of_one_object():
    outputs = torch.full((1, 1, 2, 3, 3), -1.0)
    outputs[0, 0, :, 1, 1] = 1
    targets = torch.zeros(1, 2, 3, 3, dtype=torch.long)
    targets[0, 0, 1, 1] = 1
    values = measured(BinaryOverlap(255), outputs, targets)
    assert values["dice"] == 2 / 3
    assert values["hd95"] == pytest.approx(0.95)
