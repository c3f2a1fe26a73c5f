"""How well pixels are classified, in images and volumes: counts of pixels, and from these Dice,
sensitivity, specificity and mean IoU; the 95 % Hausdorff distance (HD95) between contours; and
whether a saliency map points at them.

HD95 is in print and in released code two different numbers (`Reading`), and so is what is undefined
where masks are empty.
"""

import math
import warnings
from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Reading = Literal["paper", "released"]
"""`paper`: as printed; `released`: what the authors' released code computes."""

RELEASED_LOGIT = 0.5
"""Above this raw logit, a probability of 0.622, the authors' released code takes a pixel for object
when it computes HD95; for all else it is above a probability of 0.5, the logit 0."""
PERCENTILE = 95.0
"""Of distances, in percent."""


# -- of several classes --


def confusions(predicted: Tensor, target: Tensor, classes: int, ignore: int) -> Tensor:
    """How many pixels of each class (row) were taken for which (column), int64 (n, classes,
    classes), of integer classes (n, *sides); pixels whose target is `ignore` do not count. Raises
    ValueError for other shapes and for classes beyond the number there are.
    """
    if predicted.shape != target.shape:
        raise ValueError(
            f"expected predictions and targets of one shape, not {tuple(predicted.shape)} and"
            f" {tuple(target.shape)}"
        )
    counted = target != ignore
    numbers = torch.arange(len(target), device=target.device)
    samples = spread(numbers, target)[counted]
    predicted, target = predicted[counted].long(), target[counted].long()
    if target.numel() and not (
        min(predicted.min(), target.min()) >= 0 and max(predicted.max(), target.max()) < classes
    ):
        raise ValueError(f"there are classes outside of 0 to {classes - 1}")
    places = (samples * classes + target) * classes + predicted
    return torch.bincount(places, minlength=len(counted) * classes**2).view(-1, classes, classes)


def dice(matrices: Tensor) -> Tensor:
    """Dice, float64 (n,) in [0, 1], from confusions (n, classes, classes): 2 |A and B| / (|A| +
    |B|), the mean over the classes but 0, background, that occur in the target; NaN without any. As
    MONAI's `DiceMetric(include_background=False)`, but confusions of a group may be added.
    """
    matrices = matrices.cpu().double()
    in_target, in_prediction = matrices.sum(dim=2), matrices.sum(dim=1)
    values = 2 * matrices.diagonal(dim1=1, dim2=2) / (in_target + in_prediction)
    return values.where(in_target > 0, math.nan)[:, 1:].nanmean(dim=1)


def mean_iou(matrix: Tensor) -> float:
    """Mean intersection over union, in [0, 1], from a confusion (classes, classes), over the
    classes that occur in target or prediction. Raises ValueError if no pixel counts.
    """
    matrix = matrix.cpu().double()
    both = matrix.diagonal()
    either = matrix.sum(dim=0) + matrix.sum(dim=1) - both
    if not either.any():
        raise ValueError("the mean IoU of no labelled pixels is undefined")
    return float((both / either)[either > 0].mean())


def spread(samples: Tensor, like: Tensor) -> Tensor:
    """What is known of n samples (n,), of every pixel of `like` (n, *sides)."""
    return samples.view(-1, *[1] * (like.ndim - 1)).expand_as(like)


# -- of one object --


def counts(predicted: Tensor, truth: Tensor, labelled: Tensor | None = None) -> Tensor:
    """How many pixels are in neither mask, in the prediction alone, in the truth alone, in both:
    int64 (n, 2, 2), as `confusions` of two classes. Masks are boolean (n, *sides); with `labelled`,
    only pixels count that are True there. Raises ValueError for other shapes and types.
    """
    _check(predicted, truth)
    if labelled is None:
        labelled = torch.ones_like(truth)
    parts = (~truth & ~predicted, ~truth & predicted, truth & ~predicted, truth & predicted)
    sums = [(part & labelled).flatten(1).sum(dim=1) for part in parts]
    return torch.stack(sums, dim=1).view(-1, 2, 2)


def shares(counted: Tensor, reading: Reading = "paper") -> dict[str, Tensor]:
    """Dice, sensitivity and specificity by name, float64 (n,) in [0, 1], of `counts` (n, 2, 2)
    (FedIOD's appendix). Of truth y and prediction p: 2 |y and p| / (|y| + |p|), |y and p| / |y|,
    and |not y and not p| / |not y|. Where the denominator is 0 it is NaN, which means leave out; by
    `released`, whose denominators have 1e-8 more, it is 0.
    """
    neither, alone, missed, both = counted.cpu().double().flatten(1).T
    values = {
        "dice": 2 * both / (2 * both + alone + missed),
        "sensitivity": both / (missed + both),
        "specificity": neither / (neither + alone),
    }
    if reading == "paper":
        return values
    return {name: share.nan_to_num(0.0) for name, share in values.items()}


def hd95(predicted: Tensor, truth: Tensor, reading: Reading = "paper") -> Tensor:
    """95 % Hausdorff distance in pixels, float64 (n,), of the contours of boolean masks (n,
    *sides), images or volumes.

    - `paper`: the larger of the two directed 95 % quantiles (FedIOD's Eq. 13), by MONAI, in single
      precision: contours are what a cross erodes, at the edge of the image too. With both masks
      empty it is NaN; with one it costs the `diagonal` of the image, as the BraTS challenges do.
    - `released`: NumPy's 95th percentile of the distances of both directions, pooled, between
      contours to which the edge of the image does not belong. NaN where a contour is empty.

    Raises ValueError for other shapes and types.
    """
    _check(predicted, truth)
    predicted, truth = predicted.detach().cpu(), truth.detach().cpu()
    if reading == "released":
        pairs = zip(predicted.numpy(), truth.numpy(), strict=True)
        return torch.tensor([_pooled(a, b) for a, b in pairs], dtype=torch.float64)
    filled = [mask.flatten(1).any(dim=1) for mask in (predicted, truth)]
    both = filled[0] & filled[1]
    values = torch.full((len(truth),), diagonal(truth.shape[1:]), dtype=torch.float64)
    values[~filled[0] & ~filled[1]] = math.nan
    if both.any():
        with warnings.catch_warnings():  # it calls what it has deprecated itself
            warnings.simplefilter("ignore", FutureWarning)
            from monai.metrics import compute_hausdorff_distance  # takes seconds to import

            pair = predicted[both][:, None], truth[both][:, None]
            found = compute_hausdorff_distance(*pair, True, percentile=PERCENTILE)
        values[both] = found[:, 0].double()
    return values


def diagonal(sides: Sequence[int]) -> float:
    """The diagonal of these sides, in pixels: what a distance costs that is missed."""
    return float(np.linalg.norm(sides))


def contour(mask: NDArray[np.bool_], at_edge: bool) -> NDArray[np.bool_]:
    """The pixels of a mask of any shape that a cross-shaped erosion takes away: those with a
    neighbour, along an axis, outside of it. With `at_edge` also those at the edge of the image.
    """
    from scipy.ndimage import binary_erosion

    inner: NDArray[np.bool_] = binary_erosion(mask, border_value=0 if at_edge else 1)
    return mask & ~inner


def _pooled(predicted: NDArray[np.bool_], truth: NDArray[np.bool_]) -> float:
    from scipy.spatial import cKDTree

    a, b = (np.argwhere(contour(mask, at_edge=False)) for mask in (predicted, truth))
    if not len(a) or not len(b):
        return math.nan
    distances = np.concatenate([cKDTree(b).query(a)[0], cKDTree(a).query(b)[0]])
    return float(np.percentile(distances, PERCENTILE))


def _check(predicted: Tensor, truth: Tensor) -> None:
    if predicted.shape != truth.shape or truth.ndim not in (3, 4):
        raise ValueError(
            f"expected masks (n, h, w) or (n, d, h, w) of one shape, not {tuple(predicted.shape)}"
            f" and {tuple(truth.shape)}"
        )
    if predicted.dtype != torch.bool or truth.dtype != torch.bool:
        raise ValueError(f"expected boolean masks, not {predicted.dtype} and {truth.dtype}")


# -- of a saliency map --


def pointing_hits(maps: Tensor, places: Tensor) -> Tensor:
    """Whether maps (n, h, w) of at least 0 point at `places`, bool (n, H, W), on a grid of its own;
    bool (n,). The pointing game of Zhang et al. 2018 ("Top-down neural attention by excitation
    backprop", section 4.2): a map points at the centre of its greatest value, the first of equal
    ones; no tolerance. One that is 0 everywhere points at nothing.
    """
    height, width = maps.shape[1:]
    flat = maps.flatten(1)
    at = flat.argmax(dim=1)
    row = (2 * (at // width) + 1) * places.shape[1] // (2 * height)
    column = (2 * (at % width) + 1) * places.shape[2] // (2 * width)
    return places[torch.arange(len(maps), device=maps.device), row, column] & (flat > 0).any(dim=1)
