"""The Fréchet distance, by hand and by SciPy's matrix root; the Inception Score, by hand and by
SciPy's entropy; and what they refuse.
"""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.linalg import sqrtm
from scipy.stats import entropy
from torchmetrics.image.fid import FrechetInceptionDistance

from fedtables.metrics.generated import (
    adapted_inception_score,
    frechet_distance,
    inception_score,
    title,
)


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
    first, second = torch.tensor([[0.0], [2.0]]), torch.tensor([[3.0], [7.0]])
    assert frechet_distance(first, second) == pytest.approx(18, rel=1e-12)


def test_crossed_gaussians_by_hand():
    # Two needles, at an angle t: A B has one eigenvalue that is not 0, cos(t)^2; so 1 + 1 - 2 |cos
    # t|
    needles = (torch.tensor([math.cos(t), math.sin(t)]).double() for t in (0.0, 1.0))
    first, second = (rows_of(torch.zeros(2), needle.outer(needle)) for needle in needles)
    by_hand = 2 - 2 * math.cos(1.0)
    assert frechet_distance(first, second) == pytest.approx(by_hand, rel=1e-6)  # a rounded root


@pytest.mark.parametrize(("n", "d"), [(200, 16), (2, 40)])
def test_a_set_has_no_distance_to_itself_in_any_order(n, d):
    rows = 100 * features(n, d)
    assert frechet_distance(rows, rows.flip(0)) == pytest.approx(0, abs=1e-3)


@pytest.mark.filterwarnings("ignore:Matrix is singular")
@pytest.mark.parametrize(("n", "m", "d"), [(60, 50, 12), (7, 50, 12), (2, 3, 12)])
def test_the_formula_with_scipys_matrix_root_gives_the_same(n, m, d):
    a, b = features(n, d, seed=1), features(m, d, seed=2)
    # SciPy's root of a singular matrix is good to half the digits only
    near = 1e-9 if min(n, m) > d else 1e-5
    assert frechet_distance(a, b) == pytest.approx(by_scipy(a, b), rel=near)


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


@settings(deadline=None, max_examples=25)
@given(st.floats(-50, 50), st.floats(0.1, 50), st.integers(2, 9))
def test_a_shift_adds_its_square_and_a_scale_its_own(shift, factor, n):
    a, b = features(n, 4, seed=1), features(n, 4, seed=2)
    base = frechet_distance(a, b)
    assert frechet_distance(b, a) == pytest.approx(base, rel=1e-9)
    assert frechet_distance(a + shift, b + shift) == pytest.approx(base, rel=1e-6)
    assert frechet_distance(factor * a, factor * b) == pytest.approx(factor**2 * base, rel=1e-9)
    assert frechet_distance(a, a + shift) == pytest.approx(4 * shift**2, rel=1e-9, abs=1e-9)


def test_only_inceptions_distance_is_called_fid():
    assert title("inception-v3", "Inception-v3 (x)") == "FID under Inception-v3 (x)"
    assert title("efficientnet-lite0", "Lite0") == "Fréchet distance under Lite0"


@pytest.mark.parametrize("second", [torch.zeros(4, 2), torch.zeros(4), torch.zeros(2, 3, 4)])
def test_features_of_other_shapes_are_refused(second):
    with pytest.raises(ValueError, match=r"needs features \(n, d\) and \(m, d\)"):
        frechet_distance(torch.zeros(4, 3), second)


def test_a_single_image_has_no_covariance_and_features_are_finite():
    with pytest.raises(ValueError, match="two rows of features at least"):
        frechet_distance(torch.zeros(1, 2), torch.zeros(4, 2))
    for bad in (math.nan, math.inf):
        with pytest.raises(ValueError, match="finite"):
            frechet_distance(torch.zeros(4, 2), torch.tensor([[0.0, bad], [0.0, 0.0]]))


# -- the Inception Score --

SURE = torch.eye(4)
"""Four images, each surely of another class."""
UNSURE = torch.full((4, 4), 0.25)

logits = arrays(
    np.float64,
    array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=8),
    elements=st.floats(-50, 50),
)


def test_an_uneven_pair_by_hand():
    # p(y) = (3/4, 1/4); KL((1, 0) || p) = log 4/3, KL((1/2, 1/2) || p) = log(1/2) - (log 3/4 + log
    # 1/4) / 2 = log 2/sqrt 3
    expected = math.sqrt(4 / 3 * 2 / math.sqrt(3))
    score = inception_score(torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
    assert score == pytest.approx(expected, rel=1e-12)


@settings(deadline=None)
@given(logits)
def test_the_score_is_that_of_scipys_relative_entropy_and_of_at_most_as_many_classes(values):
    rows = torch.from_numpy(values).softmax(dim=1)
    score = inception_score(rows)
    # nor can n images show more than n classes
    assert 1 - 1e-12 <= score <= min(values.shape) + 1e-12
    expected = np.exp(np.mean([entropy(row, rows.mean(dim=0)) for row in rows]))
    assert score == pytest.approx(expected, rel=1e-9)
    assert inception_score(rows.flip(0)) == pytest.approx(score, rel=1e-12)


@pytest.mark.parametrize("shape", [(0, 4), (4,), (2, 2, 2)], ids=str)
def test_input_without_rows_of_probabilities_is_refused(shape):
    with pytest.raises(ValueError, match=r"of shape \(n, classes\), not"):
        inception_score(torch.zeros(shape))


@pytest.mark.parametrize(
    "row", [[0.5, 0.4], [1.5, -0.5], [math.nan, 1.0], [math.inf, 0.0]], ids=str
)
def test_rows_that_are_not_probabilities_are_refused(row):
    with pytest.raises(ValueError, match="none negative, each row summing to one"):
        inception_score(torch.tensor([[0.5, 0.5], row]))


def test_the_adapted_score_is_the_mean_of_the_scores_of_local_models():
    assert adapted_inception_score([SURE, UNSURE]) == pytest.approx((4 + 1) / 2, rel=1e-12)
    # Two models, each sure and varied, that disagree everywhere: the average of their probabilities
    # would be unsure, and score 1.
    assert adapted_inception_score([SURE, SURE.flip(0)]) == pytest.approx(4, rel=1e-12)
    with pytest.raises(ValueError, match="of no local models is undefined"):
        adapted_inception_score([])
