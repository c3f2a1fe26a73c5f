"""Objects in label maps, 0 for background and one number for each: the three classes that networks
learn of them, how objects are recovered from these, and how well they are: AJI, object Dice and
object Hausdorff distance.

Numbers may have gaps, and their order says nothing but who goes first in a tie; memory grows with
the largest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from fedtables.metrics.masks import PERCENTILE, contour, diagonal

Labels = NDArray[np.integer]

BACKGROUND, INSIDE, BOUNDARY = 0, 1, 2
"""The classes of `ternary`."""


def ternary(labels: Tensor) -> Tensor:
    """Background (0), inside of objects (1) and their boundary (2), int64 (n, h, w), of integer
    label maps (n, h, w), on their device. Boundary is every pixel of which a neighbour, above,
    below, left or right, has another label: where dilation and erosion by a 3 x 3 cross differ
    (FullNet, Qu et al. 2019, radius 1). Raises ValueError for another number of dimensions.
    """
    if labels.ndim != 3:
        raise ValueError(f"expected label maps (n, h, w), not {tuple(labels.shape)}")
    classes = (labels > 0).long()
    below = labels[:, 1:] != labels[:, :-1]
    beside = labels[:, :, 1:] != labels[:, :, :-1]
    for part, differs in (
        (classes[:, 1:], below),
        (classes[:, :-1], below),
        (classes[:, :, 1:], beside),
        (classes[:, :, :-1], beside),
    ):
        part.masked_fill_(differs, BOUNDARY)
    return classes


def instances_of(ternary_prediction: Labels, minimum: int = 20, radius: int = 2) -> Labels:
    """The objects (h, w), numbered from 1, in a map (h, w) of the likeliest classes of `ternary`,
    as by the code of FedIOD's authors. Of what is inside, pieces (of pixels that share a side) of
    fewer than `minimum` pixels are removed. What is left and touches, corners included, is one
    object. Objects grow by a disk of that radius, later ones over earlier.
    """
    from scipy import ndimage
    from skimage.morphology import disk

    pieces, _ = ndimage.label(ternary_prediction == INSIDE)
    large = np.bincount(pieces.ravel()) >= minimum
    large[0] = False
    labels, _ = ndimage.label(large[pieces], structure=np.ones((3, 3)))
    grown = ndimage.grey_dilation(labels, footprint=disk(radius), mode="constant")
    return _numbered(grown)


def aji(pred: Labels, truth: Labels, reuse: bool = False) -> float:
    """Aggregated Jaccard Index, in [0, 1], of predicted and true label maps (h, w): pixels that
    objects share with theirs, over the pixels of both and of predictions that are nobody's.

    Without `reuse`, FedIOD's Eq. 12: pairs that overlap are sorted by Jaccard index, of equal ones
    by the true and then the predicted number. Each is taken whose two objects are both still free.
    NaN if there is no object in either map, 0 if there is none in one.

    With `reuse` what the authors' released code does: every true object gets the prediction of the
    highest Jaccard index, whose pixels count once for each. One that overlaps none gets the
    prediction of the lowest number. 0 if there is no object. Raises ValueError for other maps.
    """
    pairs = _Pairs.of(pred, truth)
    if not reuse:
        shared = sum(pairs.overlap[t, p] for t, p in pairs.one_to_one())
        union = pairs.in_truth.sum() + pairs.in_pred.sum() - shared
        return float(shared / union) if union else math.nan
    if not all(pairs.overlap.shape):
        return 0.0
    best = pairs.jaccard.argmax(axis=1)
    shared = pairs.overlap[np.arange(len(best)), best].sum()
    nobodys = np.ones(len(pairs.in_pred), dtype=bool)
    nobodys[best] = False
    union = pairs.in_truth.sum() + pairs.in_pred[best].sum() - shared
    return float(shared / (union + pairs.in_pred[nobodys].sum()))


def object_dice(pred: Labels, truth: Labels) -> float:
    """Object Dice, in [0, 1], of label maps (h, w), the mean of both ways (GlaS, Sirinukunwattana
    et al. 2017). One way is the Dice of every true object, weighted by its pixels, and the
    prediction of the highest Jaccard index (J of FedIOD's text); without any it is 0. NaN if there
    is no object in either map, 0 if there is none in one. Raises ValueError for other maps.
    """
    pairs = _Pairs.of(pred, truth)
    scores = pairs.jaccard
    if not all(scores.shape):
        return 0.0 if any(scores.shape) else math.nan
    values = 2 * pairs.overlap / (pairs.in_truth[:, None] + pairs.in_pred)
    of_truth = values[np.arange(len(scores)), scores.argmax(axis=1)]
    of_pred = values[scores.argmax(axis=0), np.arange(scores.shape[1])]
    return pairs.both_ways(of_truth, of_pred)


def object_hausdorff(pred: Labels, truth: Labels, quantile: float = PERCENTILE) -> float:
    """Object Hausdorff distance in pixels of label maps (h, w), matched, weighted and taken both
    ways as by `object_dice`. Of two objects it is the larger of the two directed quantiles, in
    percent, of the distances between their contours (FedIOD's Eq. 13), to which the edge of the
    image belongs. An object that nothing overlaps is compared with the nearest. With no object in
    one of the maps it is the diagonal of the image, with none in either NaN. Raises ValueError as
    `object_dice` does.
    """
    pairs = _Pairs.of(pred, truth)
    scores = pairs.jaccard
    if not all(scores.shape):
        return diagonal(truth.shape) if any(scores.shape) else math.nan
    there, here = _Objects(_numbered(truth)), _Objects(_numbered(pred))
    of_truth = there.distances(here, scores, quantile)
    of_pred = here.distances(there, scores.T, quantile)
    return pairs.both_ways(of_truth, of_pred)


@dataclass(frozen=True)
class _Pairs:
    """Pixels that true objects (rows) and predicted ones (columns) have, and have in common."""

    overlap: NDArray[np.int64]
    in_truth: NDArray[np.int64]
    in_pred: NDArray[np.int64]

    @classmethod
    def of(cls, pred: Labels, truth: Labels) -> _Pairs:
        if pred.shape != truth.shape or truth.ndim != 2:
            raise ValueError(
                f"expected label maps (h, w) of one shape, not {pred.shape} and {truth.shape}"
            )
        for labels in (pred, truth):
            if not np.issubdtype(labels.dtype, np.integer) or (labels.size and labels.min() < 0):
                raise ValueError("expected label maps of integers from 0 on")
        pred, truth = _numbered(pred), _numbered(truth)
        rows, columns = (int(labels.max(initial=0)) + 1 for labels in (truth, pred))
        table = np.bincount((truth * columns + pred).ravel(), minlength=rows * columns)
        table = table.reshape(rows, columns)
        return cls(table[1:, 1:], table.sum(axis=1)[1:], table.sum(axis=0)[1:])

    @cached_property
    def jaccard(self) -> NDArray[np.float64]:
        return self.overlap / (self.in_truth[:, None] + self.in_pred - self.overlap)

    def both_ways(self, of_truth: NDArray[Any], of_pred: NDArray[Any]) -> float:
        """The mean of what true objects have and of what predicted ones have, by their pixels."""
        first = np.average(of_truth, weights=self.in_truth)
        return float(first / 2 + np.average(of_pred, weights=self.in_pred) / 2)

    def one_to_one(self) -> list[tuple[int, int]]:
        """Pairs that overlap, the highest Jaccard index first, no object twice."""
        truths, preds = self.overlap.nonzero()
        order = np.lexsort((preds, truths, -self.jaccard[truths, preds]))
        free = [True] * len(self.in_truth), [True] * len(self.in_pred)
        pairs = []
        for t, p in zip(truths[order].tolist(), preds[order].tolist(), strict=True):
            if free[0][t] and free[1][p]:
                free[0][t] = free[1][p] = False
                pairs.append((t, p))
        return pairs


class _Objects:
    """Contours of the objects of one map."""

    def __init__(self, labels: Labels):
        from scipy import ndimage
        from scipy.spatial import cKDTree

        self.contours: list[NDArray[np.int64]] = []
        for number, box in enumerate(ndimage.find_objects(labels), 1):
            points = np.argwhere(contour(labels[box] == number, at_edge=True))
            self.contours.append(points + [side.start for side in box])
        self._low = np.array([points.min(axis=0) for points in self.contours])
        self._high = np.array([points.max(axis=0) for points in self.contours])
        self._trees = [cKDTree(points) for points in self.contours]

    def distances(
        self, others: _Objects, scores: NDArray[Any], quantile: float
    ) -> NDArray[np.float64]:
        """Of each object, from that of the highest score (objects, others), or else the nearest."""
        values = []
        for number, other in enumerate(scores.argmax(axis=1).tolist()):
            if scores[number, other]:
                values.append(self._distance(number, others, other, quantile))
            else:
                values.append(self._nearest(number, others, quantile))
        return np.array(values)

    def _distance(self, number: int, others: _Objects, other: int, quantile: float) -> float:
        there = others._trees[other].query(self.contours[number])[0]
        back = self._trees[number].query(others.contours[other])[0]
        return float(max(np.percentile(there, quantile), np.percentile(back, quantile)))

    def _nearest(self, number: int, others: _Objects, quantile: float) -> float:
        """From the nearest: objects by how near their boxes are, up to what is farther than it."""
        points = self.contours[number][:, None]
        beyond = np.maximum(0, np.maximum(others._low - points, points - others._high))
        bounds = np.percentile(np.linalg.norm(beyond, axis=2), quantile, axis=0)
        least = math.inf
        for other in bounds.argsort().tolist():
            if bounds[other] >= least:
                break
            least = min(least, self._distance(number, others, other, quantile))
        return least


def _numbered(labels: Labels) -> NDArray[np.int64]:
    """The same objects numbered from 1 without gaps, in their order."""
    from skimage.segmentation import relabel_sequential

    if not labels.size:
        return labels.astype(np.int64)
    numbered: NDArray[np.int64] = relabel_sequential(labels)[0].astype(np.int64)
    return numbered
