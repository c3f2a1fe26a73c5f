"""The Fréchet distance: Gaussians by hand, SciPy's matrix root, few images, and what is refused."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import sqrtm
from torchmetrics.image.fid import FrechetInceptionDistance

from metrics.frechet import frechet_distance, is_reliable, title


def features(n, d, seed=0):
    generator = torch.Generator().manual_seed(seed)
    mix = torch.randn(d, d, generator=generator, dtype=torch.float64)
    return torch.randn(n, d, generator=generator, dtype=torch.float64) @ mix + seed


def rows_of(mean, covariance):
    """Features (2 d, d) whose mean (d,) and covariance (d, d) over n - 1 are these."""
    values, vectors = torch.linalg.eigh(covariance.double())
    axes = vectors.T * values.clamp(min=0).sqrt()[:, None] * ((2 * len(mean) - 1) / 2) ** 0.5
    return mean + torch.cat([axes, -axes])


def by_scipy(a, b):
    """The formula as it is printed, with a general matrix root."""
    a, b = a.numpy(), b.numpy()
    first, second = np.cov(a.T), np.cov(b.T)
    root = sqrtm(first @ second).real
    return ((a.mean(0) - b.mean(0)) ** 2).sum() + np.trace(first + second - 2 * root)


def test_two_gaussians_on_a_line_by_hand():
    # Means 1 and 5; variances (over n - 1) 2 and 8: (1 - 5)^2 + (sqrt 2 - sqrt 8)^2 = 16 + 2
    assert frechet_distance(
        torch.tensor([[0.0], [2.0]]), torch.tensor([[3.0], [7.0]])
    ) == pytest.approx(18, rel=1e-12)


def test_gaussians_of_the_same_axes_by_hand():
    # |(3, 4)|^2 + (1 - 2)^2 + (3 - 1)^2
    first = rows_of(torch.zeros(2), torch.diag(torch.tensor([1.0, 9.0])))
    second = rows_of(torch.tensor([3.0, 4.0]), torch.diag(torch.tensor([4.0, 1.0])))
    assert frechet_distance(first, second) == pytest.approx(25 + 1 + 4, rel=1e-12)


def test_crossed_gaussians_by_hand():
    # Two needles, at an angle t: A B has one eigenvalue that is not 0, cos(t)^2; so 1 + 1 - 2 |cos
    # t|
    t = 1.0
    first, second = (
        torch.tensor([1.0, 0.0]).double(),
        torch.tensor([math.cos(t), math.sin(t)]).double(),
    )
    zero = torch.zeros(2)
    distance = frechet_distance(
        rows_of(zero, first.outer(first)), rows_of(zero, second.outer(second))
    )
    assert distance == pytest.approx(2 - 2 * math.cos(t), rel=1e-6)  # the root of a rounded zero


@pytest.mark.parametrize(("n", "d"), [(200, 16), (10, 16), (2, 40)])
def test_a_set_has_no_distance_to_itself_in_any_order(n, d):
    rows = 100 * features(n, d)
    assert frechet_distance(rows, rows) == pytest.approx(0, abs=1e-3)
    assert frechet_distance(rows, rows.flip(0)) == pytest.approx(0, abs=1e-3)


@pytest.mark.filterwarnings("ignore:Matrix is singular")
@pytest.mark.parametrize(
    ("n", "m", "d"), [(60, 50, 12), (7, 50, 12), (7, 6, 12), (2, 3, 12), (40, 30, 2)]
)
def test_the_formula_with_scipys_matrix_root_gives_the_same(n, m, d):
    a, b = features(n, d, seed=1), features(m, d, seed=2)
    # SciPy's root of a singular matrix is good to half the digits only
    assert frechet_distance(a, b) == pytest.approx(
        by_scipy(a, b), rel=1e-9 if min(n, m) > d else 1e-5
    )


class Given(torch.nn.Module):
    """Images that are their features already."""

    num_features = 2

    def forward(self, images):
        return images.flatten(1)


def test_torchmetrics_gives_the_same():
    a = torch.arange(12, dtype=torch.float64).view(6, 2).sin()
    b = torch.arange(10, dtype=torch.float64).view(5, 2).cos() + 1
    theirs = FrechetInceptionDistance(Given(), input_img_size=(2, 1, 1)).set_dtype(torch.float64)
    theirs.update(a.view(6, 2, 1, 1), real=True)
    theirs.update(b.view(5, 2, 1, 1), real=False)
    assert frechet_distance(a, b) == pytest.approx(float(theirs.compute()), rel=1e-9)
    assert frechet_distance(a, b) == pytest.approx(
        2.05462215899, rel=1e-9
    )  # as version 1.9.0 printed it


@settings(deadline=None, max_examples=25)
@given(st.integers(2, 9), st.integers(2, 9), st.integers(1, 6), st.integers(0, 99))
def test_sets_of_the_same_moments_have_the_same_distance(n, m, d, seed):
    a, b = features(n, d, seed), features(m, d, seed + 1)
    expected = frechet_distance(a, b)
    others = [rows_of(rows.mean(0), rows.T.cov().view(d, d)) for rows in (a, b)]
    # eigenvalues that are zero but for rounding enter by their roots
    assert frechet_distance(*others) == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert frechet_distance(b, a) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert expected >= 0


@settings(deadline=None, max_examples=25)
@given(st.floats(-50, 50), st.floats(0.1, 50), st.integers(2, 9))
def test_a_shift_adds_its_square_and_a_scale_its_own(shift, factor, n):
    a, b = features(n, 4, seed=1), features(n, 4, seed=2)
    base = frechet_distance(a, b)
    assert frechet_distance(a + shift, b + shift) == pytest.approx(base, rel=1e-6)
    assert frechet_distance(factor * a, factor * b) == pytest.approx(factor**2 * base, rel=1e-9)
    assert frechet_distance(a, a + shift) == pytest.approx(4 * shift**2, rel=1e-9, abs=1e-9)


def test_single_precision_is_measured_in_double():
    a, b = features(9, 4, seed=1).float() + 1000, features(8, 4, seed=2).float() + 1000
    assert frechet_distance(a, b) == frechet_distance(a.double(), b.double())


@pytest.mark.parametrize(
    ("n", "m", "reliable"),
    [(1280, 1280, True), (1279, 5000, False), (5000, 16, False), (5000, 2000, True)],
)
def test_fewer_images_than_features_are_flagged(n, m, reliable):
    assert is_reliable(n, m, 1280) == reliable


def test_only_inceptions_distance_is_called_fid():
    assert (
        title("inception-v3", "Inception-v3 (of some weights)")
        == "FID under Inception-v3 (of some weights)"
    )
    assert (
        title("efficientnet-lite0", "EfficientNet-Lite0")
        == "Fréchet distance under EfficientNet-Lite0"
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [((4, 3), (4, 2)), ((4,), (4,)), ((4, 0), (4, 0)), ((2, 3, 4), (2, 3, 4))],
    ids=str,
)
def test_features_of_other_shapes_are_refused(first, second):
    with pytest.raises(ValueError, match=r"needs features \(n, d\) and \(m, d\)"):
        frechet_distance(torch.zeros(first), torch.zeros(second))


@pytest.mark.parametrize("n", [0, 1])
def test_a_single_image_has_no_covariance(n):
    with pytest.raises(ValueError, match=f"two rows of features at least, not {n} and 4"):
        frechet_distance(torch.zeros(n, 2), torch.zeros(4, 2))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_features_that_are_not_finite_are_refused(bad):
    with pytest.raises(ValueError, match="finite"):
        frechet_distance(torch.zeros(4, 2), torch.tensor([[0.0, bad], [0.0, 0.0]]))
