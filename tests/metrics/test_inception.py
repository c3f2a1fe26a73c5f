"""The Inception Score, by hand and against an entropy of SciPy's."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.stats import entropy

from metrics.inception import adapted_inception_score, inception_score

SURE = torch.eye(4)
"""Four images, each surely of another class."""
UNSURE = torch.full((4, 4), 0.25)
PAIR = torch.tensor([[0.75, 0.25], [0.25, 0.75]])
PAIR_SCORE = 2 * 0.75**0.75 * 0.25**0.25
"""The marginal is uniform, so each KL is log 2 + 0.75 log 0.75 + 0.25 log 0.25."""

logits = arrays(
    np.float64,
    array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=8),
    elements=st.floats(-50, 50),
)


def test_sure_and_varied_images_score_the_number_of_classes():
    assert inception_score(SURE)[0] == pytest.approx(4, rel=1e-12)
    assert inception_score(SURE.repeat(5, 1))[0] == pytest.approx(4, rel=1e-12)


def test_an_uneven_pair_by_hand():
    # p(y) = (3/4, 1/4); KL((1, 0) || p) = log 4/3, KL((1/2, 1/2) || p) = log(1/2) - (log 3/4 + log
    # 1/4) / 2 = log 2/sqrt 3
    expected = math.sqrt(4 / 3 * 2 / math.sqrt(3))
    assert inception_score(torch.tensor([[1.0, 0.0], [0.5, 0.5]]))[0] == pytest.approx(
        expected, rel=1e-12
    )


def test_splits_are_consecutive_and_their_deviation_is_the_populations():
    mean, deviation = inception_score(torch.cat([SURE, UNSURE]), splits=2)  # 4 and 1
    assert (mean, deviation) == (pytest.approx(2.5, rel=1e-12), pytest.approx(1.5, rel=1e-12))


def test_splits_of_an_uneven_number_leave_no_sample_out():
    # Two splits of five: rows 0-1 (two classes: 2) and rows 2-4 (three classes: 3).
    assert inception_score(torch.eye(5), splits=2)[0] == pytest.approx(2.5, rel=1e-12)


@settings(deadline=None)
@given(logits)
def test_the_score_lies_between_one_and_the_number_of_classes(values):
    score = inception_score(torch.from_numpy(values).softmax(dim=1))[0]
    assert (
        1 - 1e-12 <= score <= min(values.shape) + 1e-12
    )  # nor can n images show more than n classes


@settings(deadline=None)
@given(logits, st.randoms(use_true_random=False))
def test_the_order_of_images_does_not_matter_to_a_single_split(values, random):
    rows = torch.from_numpy(values).softmax(dim=1)
    order = random.sample(range(len(rows)), len(rows))
    assert inception_score(rows[order])[0] == pytest.approx(inception_score(rows)[0], rel=1e-12)


@settings(deadline=None)
@given(logits)
def test_scipys_relative_entropy_gives_the_same(values):
    rows = torch.from_numpy(values).softmax(dim=1).numpy()
    expected = np.exp(np.mean([entropy(row, rows.mean(axis=0)) for row in rows]))
    assert inception_score(torch.from_numpy(rows))[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (4,), (2, 2, 2)], ids=str)
def test_input_without_rows_of_probabilities_is_refused(shape):
    with pytest.raises(ValueError, match=r"of shape \(n, classes\), not"):
        inception_score(torch.zeros(shape))


@pytest.mark.parametrize(
    "row",
    [[0.5, 0.4], [0.0, 0.0], [1.5, -0.5], [float("nan"), 1.0], [float("inf"), 0.0], [3.0, -2.0]],
    ids=str,
)
def test_rows_that_are_not_probabilities_are_refused(row):
    with pytest.raises(ValueError, match="none negative, each row summing to one"):
        inception_score(torch.tensor([[0.5, 0.5], row]))


@pytest.mark.parametrize("splits", [0, -1, 5])
def test_more_splits_than_samples_or_none_are_refused(splits):
    with pytest.raises(ValueError, match=f"4 samples cannot be divided into {splits} splits"):
        inception_score(SURE, splits)


def test_the_adapted_score_is_the_mean_over_local_models():
    assert adapted_inception_score([SURE, UNSURE]) == pytest.approx((4 + 1) / 2, rel=1e-12)
    assert adapted_inception_score([PAIR]) == inception_score(PAIR)[0]


def test_the_adapted_score_averages_scores_not_probabilities():
    # Two models, each sure and varied, that disagree everywhere: their average would be unsure, and
    # score 1.
    assert adapted_inception_score([torch.eye(2), torch.eye(2).flip(0)]) == pytest.approx(
        2, rel=1e-12
    )


def test_the_adapted_score_of_no_models_is_refused():
    with pytest.raises(ValueError, match="of no local models is undefined"):
        adapted_inception_score([])


def test_local_models_that_judged_other_images_are_refused():
    with pytest.raises(ValueError, match="the same images, with the same classes"):
        adapted_inception_score([SURE, SURE[:3]])
