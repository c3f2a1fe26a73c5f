"""Fréchet distance of two sets of images: how far apart Gaussians lie that are fitted to their
features.

It is Fréchet Inception Distance, FID, only under Inception-v3's features; `title` names it.
FedIOD's Fig. 4 reads a larger one, between recovered and private images, as stronger privacy; for
generated images a smaller one is a better likeness.
"""

from __future__ import annotations

import torch
from torch import Tensor


def frechet_distance(features_a: Tensor, features_b: Tensor) -> float:
    """Squared Fréchet (2-Wasserstein) distance of Gaussians fitted to features (n, d) and (m, d):
    Heusel et al. 2017's FID.

    |mean_a - mean_b|^2 + trace(A + B - 2 (A B)^(1/2)), where A and B are covariances over n - 1 and
    m - 1. In double precision on the CPU. It falls as n and m grow, most of all below d
    (`is_reliable`): compare only distances of the same n, m and extractor.

    Raises ValueError for features of other shapes, fewer than two rows, or values that are not
    finite.
    """
    if (
        features_a.ndim != 2
        or features_b.ndim != 2
        or features_a.shape[1] != features_b.shape[1]
        or not features_a.shape[1]
    ):
        raise ValueError(
            f"the Fréchet distance needs features (n, d) and (m, d), not {tuple(features_a.shape)}"
            f" and {tuple(features_b.shape)}"
        )
    if min(len(features_a), len(features_b)) < 2:
        raise ValueError(
            f"a covariance needs two rows of features at least, not {len(features_a)} and"
            f" {len(features_b)}"
        )
    a, b = _finite(features_a), _finite(features_b)
    return _distance(a.mean(dim=0), _root(a), b.mean(dim=0), _root(b))


def is_reliable(n: int, m: int, d: int) -> bool:
    """Whether both sets have at least as many images as there are features; below, a covariance is
    singular by too few.
    """
    return min(n, m) >= d


def title(extractor: str, described: str) -> str:
    """What a report calls the distance under the extractor of that name, described so: FID only of
    Inception-v3.
    """
    return f"{'FID' if extractor == 'inception-v3' else 'Fréchet distance'} under {described}"


def _finite(values: Tensor) -> Tensor:
    """In double precision on the CPU (MPS has none). Raises ValueError for infinities and what is
    not a number.
    """
    values = values.detach().to("cpu", torch.float64)
    if not values.isfinite().all():
        raise ValueError("the Fréchet distance needs finite features")
    return values


def _root(features: Tensor) -> Tensor:
    """R (min(n, d), d) with R^T R the covariance of features (n, d)."""
    centred = features - features.mean(dim=0)
    return torch.linalg.qr(centred, mode="r").R / (len(features) - 1) ** 0.5


def _distance(mean_a: Tensor, root_a: Tensor, mean_b: Tensor, root_b: Tensor) -> float:
    """With A = P^T P and B = Q^T Q, trace (A B)^(1/2) is the sum of P Q^T's singular values: no
    matrix root of a product, which is not symmetric, and nothing that rounding can make complex or
    negative."""
    overlap = torch.linalg.svdvals(root_a @ root_b.T).sum()
    distance = (
        (mean_a - mean_b).square().sum()
        + root_a.square().sum()
        + root_b.square().sum()
        - 2 * overlap
    )
    return max(0.0, float(distance))
