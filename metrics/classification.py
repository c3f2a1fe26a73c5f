"""Metrics of classification."""

import math
from collections.abc import Sequence

import torch

UNKNOWN = 255
"""In multi-label targets: whether the class is present is not known."""


def auc_by_class(scores: torch.Tensor, targets: torch.Tensor) -> list[float]:
    """Area under the ROC curve of every class, by scikit-learn. Ties count half.

    Args:
        scores: (n, classes). A NaN is ranked worst: last for a positive, first for a negative.
        targets: (n, classes) of 0, 1 and `UNKNOWN`, which does not count.

    Returns:
        One fraction per class; NaN if its targets are all equal, or all its scores NaN.
    """
    from sklearn.metrics import roc_auc_score  # takes a while, and most runs have no use for it

    areas = []
    for score, target in zip(scores.T.cpu(), targets.T.cpu(), strict=True):
        known = target != UNKNOWN
        score, target = score[known], target[known]
        both = bool((target == 0).any()) and bool((target == 1).any())
        lost = score.isnan()
        if not both or lost.all():
            areas.append(math.nan)
            continue
        if lost.any():
            finite = score[~lost].double()
            wrong = torch.where(target == 1, finite.min() - 1, finite.max() + 1)
            score = torch.where(lost, wrong, score.double())
        areas.append(float(roc_auc_score(target.numpy(), score.numpy())))
    return areas


def accuracy_by_class(predicted: torch.Tensor, targets: torch.Tensor, classes: int) -> torch.Tensor:
    """Accuracy on each class's samples, float64 (classes,), of classes (n,); NaN without any."""
    right = torch.bincount(targets[predicted == targets], minlength=classes)
    return right.double() / torch.bincount(targets, minlength=classes)


def weighted_by_labels(by_class: torch.Tensor, counts: Sequence[int]) -> float:
    """Accuracy on a client's own label distribution: of each class (classes,), weighted by how many
    labels of it the client holds, of classes with a test sample. NaN where nothing is left.
    """
    weights = torch.tensor(counts, dtype=torch.float64)
    known = ~by_class.isnan()
    return float((by_class[known] * weights[known]).sum() / weights[known].sum())
