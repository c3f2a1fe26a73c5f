"""Private aggregation of teachers' votes: PATE, by a curator or by the clients themselves.

A teacher votes for one class of each query. One record changes the vote of one teacher, so of a
query's counts one falls by 1 and one rises by 1. With Laplace noise on the counts this is LNMax
(Papernot et al. 2017, "Semi-supervised knowledge transfer for deep learning from private training
data"), with Gaussian noise GNMax (Papernot et al. 2018, "Scalable private learning with PATE").
`noise` is the scale of the Laplace noise or the standard deviation of the Gaussian, in votes.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
from scipy.special import log_ndtr, logsumexp
from torch import Tensor
from torch.nn import functional as F

from fedtables.privacy.plan import VOTES
from fedtables.privacy.releases import ORDERS, GaussianSteps, LaplaceSteps, RenyiCurve, Steps


def votes(logits: Tensor) -> Tensor:
    """One-hot votes of the same shape (..., classes), for the class of the largest logit."""
    return F.one_hot(logits.argmax(dim=-1), logits.shape[-1]).to(logits.dtype)


def histogram(logits: Tensor) -> Tensor:
    """Votes (n, classes) that the teachers' logits (teachers, n, classes) give each class."""
    return votes(logits).sum(dim=0)


def vote_share(
    logits: Tensor, noise: float, clients: int, mechanism: str, generator: torch.Generator
) -> Tensor:
    """What one of `clients` sends in place of its `logits` (n, classes): its votes and its share of
    the noise. Shares are independent, and the noise of their sum is a trusted curator's: a normal
    distribution splits into normal ones, Laplace's into differences of gamma draws of shape
    1/clients (Kotz, Kozubowski and Podgórski, "The Laplace Distribution and Generalizations",
    2001). The server must see the sum only, by secure aggregation, which is assumed. Of t clients
    who collude the others are left with (clients - t)/clients of the noise's variance. Raises
    ValueError for an unknown mechanism and noise that is not positive.
    """
    _check(noise, mechanism)
    if mechanism == "gaussian":
        drawn = torch.randn(logits.shape, generator=generator, device=generator.device)
        share = noise / math.sqrt(clients) * drawn
    else:  # torch draws gamma variables from its global generator only
        seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
        first, second = np.random.default_rng(seed).gamma(1 / clients, noise, (2, *logits.shape))
        share = torch.from_numpy((first - second).astype(np.float32))
    return votes(logits) + share.to(logits)


def release(noise: float, queries: int, mechanism: str) -> Steps:
    """What answering `queries` costs whatever the votes are, the noisy counts themselves being
    public. Two counts differ by 1 each: an L2 sensitivity of sqrt 2 (Papernot et al. 2018,
    Proposition 8), or two Laplace mechanisms of sensitivity 1, whose divergences add up to less
    than that of one of L1 sensitivity 2. Raises ValueError as `vote_share` and for no queries.
    """
    _check(noise, mechanism)
    if mechanism == "gaussian":
        return GaussianSteps(noise / math.sqrt(2), 1.0, queries)
    return LaplaceSteps(noise, 2 * queries)


def data_dependent_release(counts: Tensor, noise: float, mechanism: str) -> RenyiCurve:
    """What the classes answered cost with these `counts` (n, classes) of votes, if nothing but the
    classes is published; never above `release`. It is itself a function of the private votes, and
    no guarantee: publishing it needs noise by its smooth sensitivity (Papernot et al. 2018), which
    is not added here. Raises ValueError as `release` does.
    """
    _check(noise, mechanism)
    values = counts.detach().cpu().numpy().astype(np.float64)
    gaps = -np.sort(-values, axis=1)
    gaps = (gaps[:, :1] - gaps[:, 1:]) / noise
    if mechanism == "gaussian":  # Papernot et al. 2018, Proposition 7
        log_beaten = log_ndtr(-gaps / math.sqrt(2))
        bound: Callable[[np.ndarray, float, np.ndarray], np.ndarray] = _gnmax
    else:  # Papernot et al. 2017, Lemma 4
        log_beaten = np.log(2 + gaps) - math.log(4) - gaps
        bound = _lnmax
    # Some class always wins, so the leading one loses with at most the probability of an even draw.
    log_q = np.minimum(logsumexp(log_beaten, axis=1), math.log1p(-1 / values.shape[1]))[:, None]
    orders = np.array(ORDERS, dtype=np.float64)
    with np.errstate(all="ignore"):  # where the theorems do not apply, their terms mean nothing
        dependent = bound(log_q, noise, orders[None, :])
    per_query = np.fmin(np.maximum(dependent, 0), release(noise, 1, mechanism).rdp(ORDERS))
    return RenyiCurve(tuple(per_query.sum(axis=0).tolist()))


def _gnmax(log_q: np.ndarray, noise: float, orders: np.ndarray) -> np.ndarray:
    """Papernot et al. 2018, Theorem 6 with the orders of Proposition 10, infinite where it fails,
    of the logarithm (n, 1) of the probability of any but the leading class.
    """
    mu2 = noise * np.sqrt(-log_q)
    mu1 = mu2 + 1
    rdp1, rdp2 = mu1 / noise**2, mu2 / noise**2
    applies = (mu2 > 1) & (orders < mu1) & (-log_q > rdp2)
    applies &= log_q <= (mu2 - 1) * rdp2 - mu2 * (np.log1p(1 / (mu1 - 1)) + np.log1p(1 / (mu2 - 1)))
    stays = np.log1p(-np.exp(log_q))
    log_a = stays - np.log(-np.expm1((log_q + rdp2) * (1 - 1 / mu2)))
    log_b = rdp1 - log_q / (mu1 - 1)
    moment = np.logaddexp(stays + (orders - 1) * log_a, log_q + (orders - 1) * log_b)
    return np.where(applies, moment / (orders - 1), np.inf)


def _lnmax(log_q: np.ndarray, noise: float, orders: np.ndarray) -> np.ndarray:
    """Papernot et al. 2017, Theorem 3 (moment l is order l + 1); infinite where it fails."""
    pure = 2 / noise
    applies = log_q < -np.logaddexp(0, pure)
    stays = np.log1p(-np.exp(log_q))
    changed = stays - np.log(-np.expm1(pure + log_q))
    moment = np.logaddexp(stays + (orders - 1) * changed, log_q + (orders - 1) * pure)
    return np.where(applies, moment / (orders - 1), np.inf)


def _check(noise: float, mechanism: str) -> None:
    if mechanism not in VOTES:
        raise ValueError(f"unknown mechanism {mechanism!r}; known: {', '.join(VOTES)}")
    if not 0 < noise < math.inf:
        raise ValueError(f"the noise must be positive, not {noise}")
