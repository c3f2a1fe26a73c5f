"""One mechanism, many epsilons: what the subsampled Gaussian costs under each convention of the
papers' code.

Each step takes a share `sample_rate` of the records and adds noise of `noise_multiplier` times the
sensitivity. Neighbours, sampling, bound and conversion differ. Of a sum clipped to C the
sensitivity is C where a record is added or removed, and 2C where one is replaced. The general bound
is autodp 0.2.3.1's, which FedIOD's release uses, the tight one dp-accounting 0.6.0's.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, logsumexp

from fedtables.privacy.accounting import ADJACENCY, SAMPLING, check, epsilon
from fedtables.privacy.releases import GaussianSteps

HIGHEST = 512
"""Largest order of the bounds without replacement, whose sums grow with its square."""


@dataclass(frozen=True)
class Reading:
    """The epsilon of one mechanism under one convention."""

    name: str
    """`rdp` and `prv` of `fedtables.privacy.accounting`, or `general` and `tight` without
    replacement.
    """
    adjacency: str
    sampling: str
    bound: str
    """Theorem and conversion, by paper."""
    epsilon: float


def readings(mechanism: GaussianSteps, delta: float) -> tuple[Reading, ...]:
    """What `mechanism` costs. Raises ValueError for a delta outside (0, 1)."""

    def poisson(name: str, bound: str) -> Reading:
        return Reading(name, ADJACENCY, SAMPLING, bound, epsilon([mechanism], delta, name))

    def replaced(name: str, bound: str) -> Reading:
        spent = replaced_epsilon(mechanism, delta, tight=name == "tight")
        return Reading(name, "replace one record", "without replacement", bound, spent)

    wang = "Wang, Balle and Kasiviswanathan 2019, Theorem"
    balle = "Balle et al. 2020, Theorem 21"
    return (
        poisson("rdp", f"Mironov, Talwar and Zhang 2019, section 3.3; {balle}"),
        poisson("prv", "Gopi, Lee and Wutschitz 2021, numerical"),
        replaced("general", f"{wang} 9; Mironov 2017, Proposition 3"),
        replaced("tight", f"{wang} 27; {balle}"),
    )


def replaced_epsilon(mechanism: GaussianSteps, delta: float, tight: bool) -> float:
    """Epsilon of `mechanism` sampled without replacement, a neighbour having one record replaced,
    at integer orders: autodp's general bound and conversion, or dp-accounting's, if `tight`. Raises
    ValueError for a delta outside (0, 1).
    """
    check(delta)
    orders = np.arange(2, HIGHEST + 1)
    rdp = mechanism.steps * _without_replacement(
        mechanism.sample_rate, mechanism.noise_multiplier, tight
    )
    spent = rdp - math.log(delta) / (orders - 1)
    if tight:
        spent += np.log1p(-1 / orders) - np.log(orders) / (orders - 1)
    return max(0.0, float(spent.min()))


def _without_replacement(sample_rate: float, noise_multiplier: float, tight: bool) -> np.ndarray:
    """Divergences of one step at the orders 2 to `HIGHEST`: Wang et al., Theorem 9 or 27."""
    orders = np.arange(2, HIGHEST + 1)
    whole = orders / (2 * noise_multiplier**2)
    # The theorems' factor of each moment j; the Gaussian's divergence of infinite order is
    # infinite, and drops out.
    factors = math.log(2) + (orders - 1) * whole
    factors[0] = min(
        math.log(4) + whole[0] + math.log(-math.expm1(-whole[0])), math.log(2) + whole[0]
    )
    if tight:
        even = np.array(
            [_log_pearson_vajda(noise_multiplier, moment) for moment in range(2, HIGHEST + 2, 2)]
        )
        below, above = orders // 2 - 1, (orders + 1) // 2 - 1
        factors[1:] = np.minimum(factors, math.log(4) + (even[below] + even[above]) / 2)[1:]
    alpha, moment = orders[:, None], orders[None, :]
    with np.errstate(invalid="ignore"):  # moments above the order have no binomial coefficient
        binomials = gammaln(alpha + 1) - gammaln(moment + 1) - gammaln(alpha - moment + 1)
    terms = np.where(moment <= alpha, binomials + moment * math.log(sample_rate) + factors, -np.inf)
    return np.minimum(whole, np.logaddexp(0, logsumexp(terms, axis=1)) / (orders - 1))


def _log_pearson_vajda(noise_multiplier: float, moment: int) -> float:
    """log E_q (p/q - 1)^moment of two Gaussians a sensitivity apart, for an even moment: Theorem
    27's differences, summed on a grid, for as alternating ones they would cancel.
    """
    step = noise_multiplier / 20
    x = np.arange(-12 * noise_multiplier, moment + 12 * noise_multiplier, step)
    exponent = (2 * x - 1) / (2 * noise_multiplier**2)  # of p/q
    with np.errstate(divide="ignore"):  # p = q at one half
        log_distance = np.maximum(exponent, 0) + np.log(-np.expm1(-np.abs(exponent)))
    log_density = -((x / noise_multiplier) ** 2) / 2 - math.log(
        noise_multiplier * math.sqrt(2 * math.pi)
    )
    return float(logsumexp(log_density + moment * log_distance)) + math.log(step)
