"""How good generated images are, by a classifier's features and probabilities: the Fréchet distance
to other images, and the Inception Score. The distance is FID only under Inception-v3's features;
`title` names it.
"""

import statistics
from collections.abc import Sequence

import torch
from torch import Tensor

TOLERANCE = 1e-3
"""How far a row of probabilities may sum from one, by rounding of single precision."""


def frechet_distance(features_a: Tensor, features_b: Tensor) -> float:
    """Squared Fréchet (2-Wasserstein) distance of Gaussians fitted to features (n, d) and (m, d):
    Heusel et al. 2017's FID, |mean_a - mean_b|^2 + trace(A + B - 2 (A B)^(1/2)), where A and B are
    covariances over n - 1 and m - 1. It falls as n and m grow, most of all below d: compare only
    distances of the same n, m and extractor. Raises ValueError for features of other shapes, fewer
    than two rows, or values that are not finite.
    """
    shapes = tuple(features_a.shape), tuple(features_b.shape)
    if features_a.ndim != 2 or features_b.ndim != 2 or shapes[0][1] != shapes[1][1]:
        raise ValueError(
            "the Fréchet distance needs features (n, d) and (m, d), not"
            f" {' and '.join(map(str, shapes))}"
        )
    if min(len(features_a), len(features_b)) < 2:
        raise ValueError(f"a covariance needs two rows of features at least, not those of {shapes}")
    # MPS has no double precision.
    a, b = (x.detach().to("cpu", torch.float64) for x in (features_a, features_b))
    if not (a.isfinite().all() and b.isfinite().all()):
        raise ValueError("the Fréchet distance needs finite features")
    # With A = P^T P and B = Q^T Q, trace (A B)^(1/2) is the sum of P Q^T's singular values: no
    # matrix root of a product, which is not symmetric, and nothing that rounding can make complex
    # or negative.
    p, q = _root(a), _root(b)
    overlap = torch.linalg.svdvals(p @ q.T).sum()
    means = (a.mean(dim=0) - b.mean(dim=0)).square().sum()
    return max(0.0, float(means + p.square().sum() + q.square().sum() - 2 * overlap))


def _root(features: Tensor) -> Tensor:
    """R (min(n, d), d) with R^T R the covariance of features (n, d)."""
    centred = features - features.mean(dim=0)
    return torch.linalg.qr(centred, mode="r").R / (len(features) - 1) ** 0.5


def title(extractor: str, described: str) -> str:
    """What a report calls the distance under an extractor: FID only of Inception-v3."""
    return f"{'FID' if extractor == 'inception-v3' else 'Fréchet distance'} under {described}"


def inception_score(probabilities: Tensor) -> float:
    """The Inception Score, exp(mean over x of KL(p(y|x) || p(y))), of `probabilities` p(y|x) (n,
    classes). It says how sure a classifier is of each image, and how varied it finds them all, and
    grows with n. Salimans et al. 2016 ("Improved Techniques for Training GANs"), section 4, in one
    split. Raises ValueError for empty input and rows that are not probabilities.
    """
    if probabilities.ndim != 2 or probabilities.numel() == 0:
        raise ValueError(
            "the Inception Score needs probabilities of shape (n, classes), not"
            f" {tuple(probabilities.shape)}"
        )
    rows = probabilities.detach().to("cpu", torch.float64)  # MPS has no double precision
    totals = rows.sum(dim=1, keepdim=True)
    if not ((totals - 1).abs() <= TOLERANCE).all() or not (rows >= 0).all():  # NaN fails both
        raise ValueError(
            "the Inception Score needs rows that are probabilities: none negative, each row summing"
            " to one"
        )
    rows = rows / totals
    marginal = rows.mean(dim=0)
    divergence = (torch.xlogy(rows, rows) - torch.xlogy(rows, marginal)).sum(dim=1)
    return float(divergence.mean().exp())


def adapted_inception_score(probabilities: Sequence[Tensor]) -> float:
    """Inception Score with each local model T_k as the classifier, averaged over k (FedIOD,
    appendix, Table 7): `probabilities[k]` (n, classes) are what T_k says of the same n images.
    Raises ValueError for no models and as `inception_score` does.
    """
    if not probabilities:
        raise ValueError("the adapted Inception Score of no local models is undefined")
    return statistics.fmean(inception_score(p) for p in probabilities)
