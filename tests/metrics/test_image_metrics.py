"""PSNR and SSIM of images and volumes and the matching of a batch: by hand, against scikit-image's
numbers, and what is refused.
"""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage.metrics import structural_similarity

from fedtables.metrics.images import (
    WINDOW,
    VolumeQuality,
    match,
    psnr,
    similarity,
    ssim,
    volume_quality,
)


def photographs(n=3, channels=3, side=16, seed=0):
    return torch.rand(
        n, channels, side, side, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )


def test_psnr_by_hand():
    # Errors of 0.1 everywhere, and of 1 in one pixel of four: mean squares 0.01 and 0.25
    images = torch.zeros(2, 1, 2, 2)
    truth = torch.tensor([[[[0.1, 0.1], [0.1, 0.1]]], [[[1.0, 0.0], [0.0, 0.0]]]])
    torch.testing.assert_close(psnr(images, truth), torch.tensor([20.0, 10 * math.log10(4)]))


def test_psnr_of_equal_images_is_infinite_and_of_infinite_ones_the_worst():
    truth = photographs(2)
    worst = truth.clone()
    worst[1, 0, 0, 0] = math.inf
    assert psnr(worst, truth).tolist() == [math.inf, -math.inf]


def test_ssim_of_flat_images_by_hand():
    # No variance: the structure's factor is 1, the brightness's (2 * 0.2 * 0.8 + 1e-4) / (0.04 +
    # 0.64 + 1e-4)
    dark, bright = (
        torch.full((1, 2, 12, 12), 0.2, dtype=torch.float64),
        torch.full((1, 2, 12, 12), 0.8, dtype=torch.float64),
    )
    assert ssim(dark, bright).item() == pytest.approx(0.3201 / 0.6801, rel=1e-9)


def test_scikit_image_gives_the_same_with_gaussian_weights():
    images, truth = photographs(side=13), photographs(side=13, seed=1)
    theirs = [
        structural_similarity(
            made.numpy(),
            true.numpy(),
            data_range=1,
            channel_axis=0,
            gaussian_weights=True,
            use_sample_covariance=False,
        )
        for made, true in zip(images, truth, strict=True)
    ]
    assert ssim(images, truth).tolist() == pytest.approx(theirs, rel=1e-9)


@settings(deadline=None, max_examples=25)
@given(st.integers(WINDOW, 17), st.integers(WINDOW, 17), st.integers(1, 3), st.integers(0, 9))
def test_ssim_is_symmetric_at_most_one_and_per_image(height, width, channels, seed):
    generator = torch.Generator().manual_seed(seed)
    a, b = torch.rand(2, 2, channels, height, width, generator=generator, dtype=torch.float64)
    both = ssim(a, b)
    torch.testing.assert_close(both, ssim(b, a))
    torch.testing.assert_close(both, torch.cat([ssim(a[:1], b[:1]), ssim(a[1:], b[1:])]))
    assert (both < 1).all()
    torch.testing.assert_close(ssim(a, a), torch.ones_like(both))


def test_images_smaller_than_the_window_are_refused():
    with pytest.raises(ValueError, match=r"11 x 11 pixels, more than images \(8, 16\) have"):
        ssim(torch.zeros(1, 1, 8, 16), torch.zeros(1, 1, 8, 16))


@settings(deadline=None, max_examples=25)
@given(st.permutations(range(5)), st.floats(0, 0.05))
def test_a_shuffled_batch_is_matched_to_the_truth(order, noise):
    truth = photographs(5)
    images = truth[torch.tensor(order)] + noise * (photographs(5, seed=1) - 0.5)
    rows = match(images, truth)
    assert [order[row] for row in rows.tolist()] == list(range(5))


def test_a_match_is_one_to_one():
    # Both are nearest to the second true image; the first is left to the image that loses less by
    # it
    truth = torch.tensor([0.0, 1.0]).view(2, 1, 1, 1)
    images = torch.tensor([0.9, 0.8]).view(2, 1, 1, 1)
    assert match(images, truth).tolist() == [1, 0]


@pytest.mark.parametrize("measure", [psnr, ssim, match])
@pytest.mark.parametrize(
    "shapes",
    [((2, 3, 16, 16), (3, 3, 16, 16)), ((3, 16, 16), (3, 16, 16)), ((0, 3, 16, 16),) * 2],
    ids=str,
)
def test_images_of_another_shape_are_refused(measure, shapes):
    with pytest.raises(ValueError, match=r"expected images \(n, c, h, w\)"):
        measure(*(torch.zeros(shape) for shape in shapes))


@pytest.mark.parametrize("measure", [psnr, ssim, match])
def test_bytes_are_refused(measure):
    byte = torch.zeros(1, 1, 16, 16, dtype=torch.uint8)
    with pytest.raises(ValueError, match="one float type"):
        measure(byte, byte)


# -- volumes --

TRUTH = torch.rand(4, 9, 8, generator=torch.Generator().manual_seed(0))


def measured(outputs, targets, groups=None, batch=3):
    metrics = VolumeQuality()
    for part in torch.arange(len(outputs)).split(batch):
        metrics.update(outputs[part], targets[part], None if groups is None else groups[part])
    return metrics.compute()


def test_an_error_of_a_tenth_of_the_range_is_20_db():
    truth = torch.zeros(2, 7, 7)
    truth[0, 0, 0] = 4.0
    ssim, psnr = volume_quality(truth + 0.4, truth)
    assert psnr == pytest.approx(20, abs=1e-4)
    # Where both are flat, only the first factor counts: (2 m n + c1) / (m^2 + n^2 + c1) of the
    # means m = 0 and n = 0.4, with c1 = (0.01 x 4)^2. The first slice has one window.
    flat = 0.0016 / (0.16 + 0.0016)
    first = structural_similarity(truth[0].numpy(), truth[0].numpy() + 0.4, data_range=4.0)
    assert ssim == pytest.approx((first + flat) / 2, rel=1e-4)


def test_the_range_is_that_of_the_whole_volume_and_slices_count_alike():
    made = TRUTH + 0.05
    ssim, psnr = volume_quality(made, TRUTH)
    top = float(TRUTH.max())
    of_slices = [
        structural_similarity(a.numpy(), b.numpy(), data_range=top)
        for a, b in zip(TRUTH, made, strict=True)
    ]
    assert ssim == pytest.approx(np.mean(of_slices))
    assert psnr == pytest.approx(20 * math.log10(top / 0.05), abs=1e-3)


@settings(deadline=None, max_examples=25)
@given(st.integers(7, 12), st.integers(7, 12), st.floats(0.1, 50), st.integers(0, 9))
def test_scikit_image_gives_the_same_for_each_slice(height, width, top, seed):
    truth, made = top * photographs(2, 3, 12, seed)[:, :, :height, :width]
    theirs = [
        structural_similarity(a.numpy(), b.numpy(), data_range=top)
        for a, b in zip(truth, made, strict=True)
    ]
    assert similarity(made, truth, top).tolist() == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("batch", [1, 2, 3, 8])
def test_volumes_are_put_together_from_any_batches(batch):
    outputs = torch.rand(6, 1, 8, 9, generator=torch.Generator().manual_seed(1))
    targets = torch.rand(6, 1, 8, 9, generator=torch.Generator().manual_seed(2))
    groups = torch.tensor([7, 7, 7, 2, 5, 5])
    found = measured(outputs, targets, groups, batch)
    parts = [slice(0, 3), slice(3, 4), slice(4, 6)]
    each = [volume_quality(outputs[p, 0], targets[p, 0]) for p in parts]
    means = dict(zip(("ssim", "psnr"), np.mean(each, axis=0), strict=True))
    counts = {f"{name}#{count}": 3 for name in means for count in ("defined", "of")}
    assert found == pytest.approx({**means, **counts})


def test_without_groups_a_slice_is_a_volume_and_black_ones_are_left_out():
    targets = torch.rand(3, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    targets[1] = 0
    outputs = targets + 0.1
    found = measured(outputs, targets)
    each = [volume_quality(outputs[k], targets[k]) for k in (0, 2)]
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
        volume_quality(torch.ones(1, 6, 8), torch.ones(1, 6, 8))


def test_a_volume_that_was_measured_takes_no_more_slices():
    slices = torch.rand(2, 1, 8, 8)
    metrics = VolumeQuality()
    with pytest.raises(ValueError, match="not black everywhere"):
        metrics.compute()
    metrics.update(slices + 0.1, slices, torch.tensor([1, 1]))
    metrics.compute()
    with pytest.raises(ValueError, match="slices of volume 1 do not follow one another"):
        metrics.update(slices + 0.1, slices, torch.tensor([1, 1]))
