"""Inception Score of generated images: how sure a classifier is of each image, and how varied it
finds them all.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import torch
from torch import Tensor

TOLERANCE = 1e-3
"""How far a row of probabilities may sum from one: above the rounding of single precision, below
that of a mistake."""


def _probabilities(values: Tensor) -> Tensor:
    """`values` (n, classes) in double precision on the CPU, each row summing to one. Raises
    ValueError if it is none.
    """
    if values.ndim != 2 or values.numel() == 0:
        raise ValueError(
            "the Inception Score needs probabilities of shape (n, classes), not"
            f" {tuple(values.shape)}"
        )
    rows = values.detach().to("cpu", torch.float64)  # MPS has no double precision
    totals = rows.sum(dim=1, keepdim=True)
    if not ((totals - 1).abs() <= TOLERANCE).all() or not (rows >= 0).all():  # NaN fails both
        raise ValueError(
            "the Inception Score needs rows that are probabilities: none negative, each row summing"
            " to one"
        )
    return rows / totals


def _score(rows: Tensor) -> float:
    """exp(mean over x of KL(p(y|x) || p(y))) of rows (n, classes), with 0 log 0 = 0."""
    marginal = rows.mean(dim=0)
    divergence = (torch.xlogy(rows, rows) - torch.xlogy(rows, marginal)).sum(dim=1)
    return float(divergence.mean().exp())


def inception_score(probabilities: Tensor, splits: int = 1) -> tuple[float, float]:
    """Mean and standard deviation over splits of the Inception Score, which lies between 1 and the
    number of classes.

    `probabilities` (n, classes) are what a classifier says of n images. The splits are consecutive
    and as equal as can be, the deviation is that of the population (0 for one split): as in the
    code of Salimans et al., "Improved Techniques for Training GANs" (2016), section 4. The score
    grows with n, so compare only scores of the same n and the same classifier.

    Raises ValueError for empty input, rows that are not probabilities, and fewer samples than
    splits.
    """
    rows = _probabilities(probabilities)
    n = len(rows)
    if not 1 <= splits <= n:
        raise ValueError(f"{n} samples cannot be divided into {splits} splits")
    scores = [_score(rows[i * n // splits : (i + 1) * n // splits]) for i in range(splits)]
    return statistics.fmean(scores), statistics.pstdev(scores)


def adapted_inception_score(probabilities: Sequence[Tensor]) -> float:
    """Inception Score with each local model T_k as the classifier, averaged over k: FedIOD,
    appendix, Table 7.

    `probabilities[k]` (n, classes) are what T_k says of the same n images.

    Raises ValueError for no models, models that differ in shape, and rows that are not
    probabilities.
    """
    if not probabilities:
        raise ValueError("the adapted Inception Score of no local models is undefined")
    if len({tuple(p.shape) for p in probabilities}) > 1:
        raise ValueError("the local models must have judged the same images, with the same classes")
    return statistics.fmean(inception_score(p)[0] for p in probabilities)
