"""Metrics of semantic segmentation: which class each pixel is of."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def confusions(predicted: Tensor, target: Tensor, classes: int, ignore: int) -> Tensor:
    """How many pixels of each class (row) were taken for which (column), of each of n samples by
    itself, int64 (n, classes, classes).

    Of integer classes (n, *sides); pixels whose target is `ignore` do not count, whatever is
    predicted there. Raises ValueError for other shapes and for classes beyond the number there are.
    """
    if predicted.shape != target.shape:
        raise ValueError(
            f"expected predictions and targets of one shape, not {tuple(predicted.shape)} and"
            f" {tuple(target.shape)}"
        )
    counted = target != ignore
    numbers = torch.arange(len(target), device=target.device)
    samples = numbers.view(-1, *[1] * (target.ndim - 1)).expand_as(target)[counted]
    predicted, target = predicted[counted].long(), target[counted].long()
    if target.numel() and not (
        min(predicted.min(), target.min()) >= 0 and max(predicted.max(), target.max()) < classes
    ):
        raise ValueError(f"there are classes outside of 0 to {classes - 1}")
    places = (samples * classes + target) * classes + predicted
    return torch.bincount(places, minlength=len(counted) * classes**2).view(-1, classes, classes)


def dice(matrices: Tensor) -> Tensor:
    """Dice, float64 (n,) in [0, 1], from n confusions (n, classes, classes): 2 |A and B| / (|A| +
    |B|), the mean over the classes that occur in the target.

    Class 0 is background and has no part in it; NaN where the target has no other class. As MONAI's
    `DiceMetric(include_background=False)` has it for one sample, but from counts: of a group its
    samples' confusions are added, and pixels without a label are in none.
    """
    matrices = matrices.cpu().double()
    in_target, in_prediction = matrices.sum(dim=2), matrices.sum(dim=1)
    values = 2 * matrices.diagonal(dim1=1, dim2=2) / (in_target + in_prediction)
    return values.where(in_target > 0, math.nan)[:, 1:].nanmean(dim=1)


def mean_iou(matrix: Tensor) -> float:
    """Mean intersection over union of the classes, in [0, 1], from a confusion (classes, classes).

    Intersection and union of a class are counted over all pixels that the confusion holds. The mean
    is over the classes that occur in target or prediction; a class that occurs in neither has no
    IoU. Raises ValueError if no pixel counts.
    """
    matrix = matrix.cpu().double()
    both = matrix.diagonal()
    either = matrix.sum(dim=0) + matrix.sum(dim=1) - both
    if not either.any():
        raise ValueError("the mean IoU of no labelled pixels is undefined")
    return float((both / either)[either > 0].mean())
