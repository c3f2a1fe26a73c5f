"""Binary masks of n samples, images or volumes: Dice, sensitivity and specificity from counts of
pixels, and the 95 % Hausdorff distance (HD95) between contours.

What is undefined where a mask is empty is settled by a rule (`Empty`); HD95 is in print and in
released code two different numbers (`Reading`).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Empty = Literal["skip", "zero", "one"]
"""What a value counts as that is undefined: a share that is 0/0, a distance to no contour.

- `skip`: NaN, which means leave out. It is what the equations say (FedIOD's appendix, 0/0).
- `zero`: the worst there is, 0 for a share. The authors' released code, whose denominators have
  1e-8 more, gives that. For a distance, the diagonal of the image.
- `one`: the best there is (1 for a share, 0 for a distance) if the prediction is the truth, as with
  both empty, else the worst. The BraTS challenges' rule.

A distance between an empty mask and one that is not is never skipped by the paper's reading: it is
a miss or a false alarm, and costs the diagonal, as the challenges have it (373.13 of a volume).
"""
Reading = Literal["paper", "released"]
"""`paper`: as printed; `released`: what the authors' released code computes."""

RELEASED_LOGIT = 0.5
"""Above this raw logit, a probability of 0.622, the authors' released code takes a pixel for object
when it computes HD95; for all else it is above a probability of 0.5, the logit 0."""
PERCENTILE = 95.0
"""Of distances, in percent."""


def counts(predicted: Tensor, truth: Tensor, labelled: Tensor | None = None) -> Tensor:
    """How many pixels are in neither mask, in the prediction alone, in the truth alone, in both:
    int64 (n, 2, 2), by truth (row) and prediction (column), as `metrics.segmentation.confusions`
    has it of two classes. Counts of one group may be added.

    Of boolean masks (n, *sides); with `labelled`, alike, of the pixels that are True there. Raises
    ValueError for other shapes and types.
    """
    _check(predicted, truth)
    if labelled is None:
        labelled = torch.ones_like(truth)
    parts = (~truth & ~predicted, ~truth & predicted, truth & ~predicted, truth & predicted)
    sums = [(part & labelled).flatten(1).sum(dim=1) for part in parts]
    return torch.stack(sums, dim=1).view(-1, 2, 2)


def dice(counted: Tensor, empty: Empty = "skip") -> Tensor:
    """Dice, float64 (n,) in [0, 1], of `counts` (n, 2, 2): 2 |y and p| / (|y| + |p|) of truth y and
    prediction p (FedIOD's appendix).

    If both are empty it is NaN by `skip`, 0 by `zero`, 1 by `one`; with one of them empty it is 0.
    """
    counted = counted.cpu().double()
    both, wrong = counted[:, 1, 1], counted[:, 0, 1] + counted[:, 1, 0]
    return settled(2 * both / (2 * both + wrong), wrong == 0, empty)


def sensitivity(counted: Tensor, empty: Empty = "skip") -> Tensor:
    """Share of the truth that is found, float64 (n,) in [0, 1], of `counts` (n, 2, 2): |y and p| /
    |y| (FedIOD's appendix).

    If the truth is empty it is NaN by `skip`, 0 by `zero`; by `one` 1 if the prediction is empty
    too, else 0.
    """
    counted = counted.cpu().double()
    wrong = counted[:, 0, 1] + counted[:, 1, 0]
    return settled(counted[:, 1, 1] / counted[:, 1].sum(dim=1), wrong == 0, empty)


def specificity(counted: Tensor, empty: Empty = "skip") -> Tensor:
    """Share of what is not in the truth that is not predicted, float64 (n,) in [0, 1], of `counts`
    (n, 2, 2): |not y and not p| / |not y| (FedIOD's appendix).

    If the truth is everywhere it is NaN by `skip`, 0 by `zero`; by `one` 1 if the prediction is
    everywhere too, else 0.
    """
    counted = counted.cpu().double()
    wrong = counted[:, 0, 1] + counted[:, 1, 0]
    return settled(counted[:, 0, 0] / counted[:, 0].sum(dim=1), wrong == 0, empty)


def hd95(
    predicted: Tensor, truth: Tensor, reading: Reading = "paper", empty: Empty = "skip"
) -> Tensor:
    """95 % Hausdorff distance in pixels, float64 (n,), of the contours of boolean masks (n,
    *sides), images or volumes.

    - `paper`: the larger of the two directed 95 % quantiles, FedIOD's Eq. 13 with the quantile in
      place of the supremum, by MONAI, in single precision: contours are what a cross erodes, at the
      edge of the image too. With one mask empty it is the `diagonal` of the image; with both
      empty it is NaN by `skip`, the diagonal by `zero`, 0 by `one`.
    - `released`: NumPy's 95th percentile of the distances of both directions, pooled, between
      contours to which the edge of the image does not belong. NaN, whatever `empty` says, where a
      contour is empty: the released code leaves out what has no prediction, and raises where only
      the truth is empty or a mask fills the image.

    Raises ValueError for other shapes, types and readings.
    """
    _check(predicted, truth)
    predicted, truth = predicted.detach().cpu(), truth.detach().cpu()
    if reading == "released":
        pairs = zip(predicted.numpy(), truth.numpy(), strict=True)
        return torch.tensor([_pooled(a, b) for a, b in pairs], dtype=torch.float64)
    if reading != "paper":
        raise ValueError(f"there is no reading {reading!r} of HD95; paper and released are")
    filled = [mask.flatten(1).any(dim=1) for mask in (predicted, truth)]
    both = filled[0] & filled[1]
    neither, worst = ~filled[0] & ~filled[1], diagonal(truth.shape[1:])
    values = torch.full((len(truth),), worst, dtype=torch.float64)
    values[neither] = math.nan
    if both.any():
        values[both] = _monai_hd95(predicted[both], truth[both])
    return settled(values, neither, empty, best=0.0, worst=worst)


def diagonal(sides: Sequence[int]) -> float:
    """The diagonal of an image or volume of these sides, in pixels: what a distance costs that is
    missed.
    """
    return float(np.linalg.norm(sides))


def settled(
    values: Tensor, right: Tensor, empty: Empty, best: float = 1.0, worst: float = 0.0
) -> Tensor:
    """Values (n,) with the rule in place of NaN; `right` (n,) says where the prediction is the
    truth. Raises ValueError for another rule.
    """
    if empty == "skip":
        return values
    if empty not in ("zero", "one"):
        raise ValueError(f"there is no rule {empty!r} for empty masks; skip, zero and one are")
    by_rule = torch.full_like(values, worst)
    if empty == "one":
        by_rule[right] = best
    return values.where(~values.isnan(), by_rule)


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


def _monai_hd95(predicted: Tensor, truth: Tensor) -> Tensor:
    with warnings.catch_warnings():  # it calls what it has deprecated itself
        warnings.simplefilter("ignore", FutureWarning)
        from monai.metrics import compute_hausdorff_distance  # takes seconds to import

        values = compute_hausdorff_distance(
            predicted[:, None],
            truth[:, None],
            include_background=True,
            percentile=PERCENTILE,
        )
    return values[:, 0].double()


def _check(predicted: Tensor, truth: Tensor) -> None:
    if predicted.shape != truth.shape or truth.ndim not in (3, 4):
        raise ValueError(
            f"expected masks (n, h, w) or (n, d, h, w) of one shape, not {tuple(predicted.shape)}"
            f" and {tuple(truth.shape)}"
        )
    if predicted.dtype != torch.bool or truth.dtype != torch.bool:
        raise ValueError(f"expected boolean masks, not {predicted.dtype} and {truth.dtype}")
