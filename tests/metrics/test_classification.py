"""Metrics of classification, by hand."""

import pytest
import torch

from metrics.classification import accuracy, median_of_last

SCORES = torch.tensor([[3.0, 1.0, 2.0], [0.0, -1.0, 5.0], [0.1, 0.3, 0.2], [9.0, 8.0, 7.0]])


def test_accuracy_is_the_share_of_samples_whose_highest_score_is_at_the_label():
    assert accuracy(SCORES, torch.tensor([0, 2, 0, 1])) == 0.5
    assert accuracy(SCORES, torch.tensor([0, 2, 1, 0])) == 1.0
    assert accuracy(SCORES, torch.tensor([1, 1, 2, 2])) == 0.0


def test_accuracy_of_a_third_is_exact_in_double_precision():
    assert accuracy(SCORES[:3], torch.tensor([0, 0, 0])) == 1 / 3


def test_accuracy_does_not_depend_on_the_order_of_samples():
    labels, order = torch.tensor([0, 1, 1, 1]), torch.tensor([2, 0, 3, 1])
    assert accuracy(SCORES[order], labels[order]) == accuracy(SCORES, labels) == 0.5


def test_the_accuracy_of_no_samples_is_refused():
    with pytest.raises(ValueError, match="of no samples is undefined"):
        accuracy(torch.empty(0, 3), torch.empty(0, dtype=torch.long))


def test_the_median_is_taken_over_the_last_epochs_only():
    assert median_of_last([0.9, 0.9, 0.1, 0.3, 0.2], 3) == 0.2


def test_the_median_of_an_even_number_of_epochs_lies_between_the_middle_two():
    assert median_of_last([0.9, 0.1, 0.5, 0.2, 0.4], 4) == pytest.approx(0.3)


def test_a_shorter_history_is_used_whole():
    assert median_of_last([0.5, 0.7, 0.6], 10) == 0.6
