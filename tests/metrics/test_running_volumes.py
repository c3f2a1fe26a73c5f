"""SSIM and PSNR by volume: worked by hand, against scikit-image, and however slices arrive."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from skimage.metrics import structural_similarity

from metrics.running_volumes import VolumeQuality, volume_quality

TRUTH = np.random.default_rng(0).random((4, 9, 8)).astype(np.float32)


def measured(outputs, targets, groups=None, batch=3):
    metrics = VolumeQuality()
    for part in torch.arange(len(outputs)).split(batch):
        metrics.update(outputs[part], targets[part], None if groups is None else groups[part])
    return metrics.compute()


def test_an_error_of_a_tenth_of_the_range_is_20_db():
    truth = np.zeros((2, 7, 7), np.float32)
    truth[0, 0, 0] = 4.0
    ssim, psnr = volume_quality(truth + 0.4, truth)
    assert psnr == pytest.approx(20, abs=1e-4)
    # Where both are flat, only the first factor counts: (2 m n + c1) / (m^2 + n^2 + c1) of the
    # means m = 0 and n = 0.4, with c1 = (0.01 x 4)^2. The first slice has one window.
    flat = 0.0016 / (0.16 + 0.0016)
    first = structural_similarity(truth[0], truth[0] + 0.4, data_range=4.0)
    assert ssim == pytest.approx((first + flat) / 2, rel=1e-4)


def test_the_range_is_that_of_the_whole_volume_and_slices_count_alike():
    made = TRUTH + 0.05
    ssim, psnr = volume_quality(made, TRUTH)
    top = float(TRUTH.max())
    of_slices = [
        structural_similarity(a, b, data_range=top) for a, b in zip(TRUTH, made, strict=True)
    ]
    assert ssim == pytest.approx(np.mean(of_slices))
    assert psnr == pytest.approx(20 * math.log10(top / 0.05), abs=1e-3)


@pytest.mark.parametrize("batch", [1, 2, 3, 8])
def test_volumes_are_put_together_from_any_batches(batch):
    outputs = torch.rand(6, 1, 8, 9, generator=torch.Generator().manual_seed(1))
    targets = torch.rand(6, 1, 8, 9, generator=torch.Generator().manual_seed(2))
    groups = torch.tensor([7, 7, 7, 2, 5, 5])
    found = measured(outputs, targets, groups, batch)
    parts = [slice(0, 3), slice(3, 4), slice(4, 6)]
    each = [volume_quality(outputs[p, 0].numpy(), targets[p, 0].numpy()) for p in parts]
    means = dict(zip(("ssim", "psnr"), np.mean(each, axis=0), strict=True))
    counts = {f"{name}#{count}": 3 for name in means for count in ("defined", "of")}
    assert found == pytest.approx({**means, **counts})


def test_without_groups_a_slice_is_a_volume_and_black_ones_are_left_out():
    targets = torch.rand(3, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    targets[1] = 0
    outputs = targets + 0.1
    found = measured(outputs, targets)
    each = [volume_quality(outputs[k].numpy(), targets[k].numpy()) for k in (0, 2)]
    assert found["psnr"] == pytest.approx(np.mean([psnr for _, psnr in each]))
    assert (found["psnr#defined"], found["psnr#of"]) == (2, 3)
    outputs[0, 0, 0, 0] = math.nan
    found = measured(outputs, targets)
    assert found["psnr"] == pytest.approx(each[1][1])
    assert (found["ssim#defined"], found["ssim#of"]) == (1, 3)
    with pytest.raises(ValueError, match="not black everywhere"):
        measured(outputs[1:2], targets[1:2])


def test_slices_that_do_not_follow_one_another_are_refused():
    slices = torch.rand(3, 1, 8, 8)
    metrics = VolumeQuality()
    with pytest.raises(ValueError, match="slices of volume 1 do not follow one another"):
        metrics.update(slices + 0.1, slices, torch.tensor([1, 2, 1]))


def test_other_shapes_are_refused():
    with pytest.raises(ValueError, match="one channel and the sides of their truth"):
        VolumeQuality().update(torch.rand(2, 2, 8, 8), torch.rand(2, 2, 8, 8))
    with pytest.raises(ValueError, match="7 pixels a side"):
        volume_quality(np.ones((1, 6, 8)), np.ones((1, 6, 8)))
