"""Metrics of classification, by hand."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from fedtables.metrics.classification import (
    UNKNOWN,
    accuracy_by_class,
    auc_by_class,
    weighted_by_labels,
)


def test_auc_is_the_share_of_pairs_in_the_right_order_and_ties_count_half():
    # Class 0: positives 0.9, 0.4 and negatives 0.5, 0.1: of four pairs three are right. Class 1:
    # one pair of two is a tie.
    scores = torch.tensor([[0.9, 0.3], [0.4, 0.3], [0.5, 0.1], [0.1, 0.0]])
    targets = torch.tensor([[1, 1], [1, 0], [0, 0], [0, UNKNOWN]], dtype=torch.uint8)
    assert auc_by_class(scores, targets) == [0.75, 0.75]


def test_auc_is_undefined_without_positives_or_negatives_and_for_a_class_it_lacks():
    scores = torch.tensor([[0.9, 0.9, math.nan, 0.2], [0.1, 0.2, math.nan, 0.1]])
    targets = torch.tensor([[1, 0, 1, 1], [1, 0, 0, 0]], dtype=torch.uint8)
    *undefined, last = auc_by_class(scores, targets)
    assert all(math.isnan(value) for value in undefined)
    assert last == 1.0


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from([0, 1, UNKNOWN])), min_size=2, max_size=30
    )
)
def test_auc_is_scikit_learns_over_the_samples_that_are_known(pairs):
    scores, targets = (torch.tensor(column)[:, None] for column in zip(*pairs, strict=True))
    (found,) = auc_by_class(scores.float(), targets.to(torch.uint8))
    known = [(score, target) for score, target in pairs if target != UNKNOWN]
    if len({target for _, target in known}) < 2:
        assert math.isnan(found)
    else:
        assert found == roc_auc_score([t for _, t in known], [s for s, _ in known])


def test_accuracy_by_class_is_the_share_of_a_classs_own_samples():
    predicted, targets = torch.tensor([0, 1, 1, 0]), torch.tensor([0, 0, 1, 1])
    found = accuracy_by_class(predicted, targets, 3).tolist()
    assert found[:2] == [0.5, 0.5]
    assert math.isnan(found[2])


def test_a_clients_accuracy_is_weighted_by_its_own_labels_where_a_class_has_test_samples():
    by_class = torch.tensor([1.0, 0.5, math.nan], dtype=torch.float64)
    assert weighted_by_labels(by_class, [1, 3, 9]) == pytest.approx(0.625)
    assert math.isnan(weighted_by_labels(by_class, [0, 0, 9]))
