"""PSNR, SSIM and the matching of a batch: by hand, against scikit-image's numbers, and what is
refused.
"""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.images import WINDOW, match, psnr, ssim


def photographs(n=3, channels=3, side=16, seed=0):
    return torch.rand(
        n, channels, side, side, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )


def waves(phase):
    """Two images (2, 11, 13) that need no random generator, so that any library can be given the
    very same.
    """
    return (
        (torch.arange(2 * 2 * 11 * 13, dtype=torch.float64) * 0.7 + phase).sin() / 2 + 0.5
    ).view(2, 2, 11, 13)


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


def test_scikit_image_gives_the_same():
    # structural_similarity(..., gaussian_weights=True, use_sample_covariance=False, data_range=1)
    # of scikit-image 0.26.0
    torch.testing.assert_close(
        ssim(waves(0), waves(0.4)),
        torch.tensor([0.91929690502, 0.925151538079], dtype=torch.float64),
    )


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
