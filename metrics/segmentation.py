"""Metrics of semantic segmentation: which class each pixel is of."""

from __future__ import annotations

import torch
from torch import Tensor


def confusion(predicted: Tensor, target: Tensor, classes: int, ignore: int = 255) -> Tensor:
    """How many pixels of each class (row) were taken for which (column), int64 (classes, classes).

    Of integer classes of one shape; pixels whose target is `ignore` do not count. Raises ValueError
    for other shapes and for classes beyond the number there are.
    """
    if predicted.shape != target.shape:
        raise ValueError(
            f"expected predictions and targets of one shape, not {tuple(predicted.shape)} and"
            f" {tuple(target.shape)}"
        )
    counted = target != ignore
    predicted, target = predicted[counted].long(), target[counted].long()
    if target.numel() and not (
        min(predicted.min(), target.min()) >= 0 and max(predicted.max(), target.max()) < classes
    ):
        raise ValueError(f"there are classes outside of 0 to {classes - 1}")
    return torch.bincount(target * classes + predicted, minlength=classes**2).reshape(
        classes, classes
    )


def mean_iou(predicted: Tensor, target: Tensor, classes: int, ignore: int = 255) -> float:
    """Mean intersection over union of the classes, in [0, 1], of predicted and target classes (n,
    h, w), both integer.

    Intersection and union of a class are counted over the pixels of all images together. The mean
    is over the classes that occur in target or prediction; a class that occurs in neither has no
    IoU. Pixels whose target is `ignore` do not count, whatever is predicted there.

    Raises ValueError for other shapes, classes beyond the number there are, and if no pixel counts.
    """
    matrix = confusion(predicted, target, classes, ignore).cpu().double()
    both = matrix.diagonal()
    either = matrix.sum(dim=0) + matrix.sum(dim=1) - both
    if not either.any():
        raise ValueError("the mean IoU of no labelled pixels is undefined")
    return float((both / either)[either > 0].mean())
