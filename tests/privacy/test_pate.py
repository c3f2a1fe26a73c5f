"""PATE: votes, noise of the stated kind, and bounds that hold for the exact mechanism of two
classes.
"""

import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from fedtables.privacy.accounting import epsilon
from fedtables.privacy.pate import data_dependent_release, histogram, release, vote_share, votes
from fedtables.privacy.releases import ORDERS, GaussianSteps, LaplaceSteps

MECHANISMS = ("gaussian", "laplace")
LOGITS = torch.tensor([[[1.0, 3.0, 2.0], [0.0, 0.0, 9.0]], [[0.0, 5.0, -1.0], [7.0, 1.0, 2.0]]])
"""Two teachers, two queries, three classes."""
AGREED = torch.tensor([[250.0, 0.0, 0.0]])


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_a_teacher_votes_for_the_class_of_its_largest_logit_and_votes_are_counted():
    assert votes(LOGITS[0]).tolist() == [[0, 1, 0], [0, 0, 1]]
    assert histogram(LOGITS).tolist() == [[0, 2, 0], [1, 0, 1]]


def winners(logits, noise, mechanism):
    """Classes that win when each of the teachers (teachers, n, classes) sends its share of the
    noise.
    """
    drawn = seeded()
    return sum(vote_share(one, noise, len(logits), mechanism, drawn) for one in logits).argmax(
        dim=1
    )


def test_noise_makes_a_minority_win_as_often_as_it_should():
    three_to_none = torch.tensor([[1.0, 0.0]]).repeat(3, 40_000, 1)
    gaussian = winners(three_to_none, 2.0, "gaussian").float().mean().item()
    laplace = winners(three_to_none, 2.0, "laplace").float().mean().item()
    assert gaussian == pytest.approx(stats.norm.sf(3 / (2 * math.sqrt(2))), abs=0.01)
    # Papernot et al. 2017, Lemma 4
    assert laplace == pytest.approx((2 + 1.5) / (4 * math.exp(1.5)), abs=0.01)


@pytest.mark.parametrize(
    ("mechanism", "whole"),
    [("gaussian", stats.norm(scale=3.0)), ("laplace", stats.laplace(scale=3.0))],
)
@pytest.mark.parametrize("clients", [1, 5])
def test_the_clients_shares_sum_to_the_votes_and_the_curators_noise(mechanism, whole, clients):
    logits = torch.tensor([[0.0, 1.0]]).repeat(5000, 1)
    generator = seeded()
    total = sum(vote_share(logits, 3.0, clients, mechanism, generator) for _ in range(clients))
    noise = (total - clients * votes(logits)).numpy()
    assert stats.kstest(noise.ravel(), whole.cdf).pvalue > 0.01
    assert abs(np.corrcoef(noise[:, 0], noise[:, 1])[0, 1]) < 0.05


def test_gnmax_costs_its_order_over_the_variance():
    found = release(4.0, 10, "gaussian")
    assert found == GaussianSteps(4 / math.sqrt(2), 1.0, 10)
    # Papernot et al. 2018, Proposition 8
    assert found.rdp([2, 5]) == pytest.approx([10 * 2 / 16, 10 * 5 / 16])


def test_lnmax_is_two_over_its_scale_differentially_private():
    found = release(4.0, 10, "laplace")
    assert found.rdp([1e9]) == pytest.approx([10 * 2 / 4], rel=1e-6)
    assert (found.rdp(ORDERS) <= LaplaceSteps(2.0, 10).rdp(ORDERS) + 1e-12).all()


def order(value):
    return ORDERS.index(value)


def test_the_data_dependent_cost_of_gnmax_by_hand():
    """Papernot et al. 2018, Theorem 6, Propositions 7 and 10, term by term. The logarithm is what
    the pre-release leaves out.
    """
    sigma, alpha = 40.0, 20
    q = 2 * 0.5 * math.erfc(250 / (2 * sigma))
    mu2 = sigma * math.sqrt(math.log(1 / q))
    mu1 = mu2 + 1
    eps1, eps2 = mu1 / sigma**2, mu2 / sigma**2
    a = (1 - q) / (1 - (q * math.exp(eps2)) ** ((mu2 - 1) / mu2))
    b = math.exp(eps1) / q ** (1 / (mu1 - 1))
    moment = (1 - q) * a ** (alpha - 1) + q * b ** (alpha - 1)
    found = data_dependent_release(AGREED, sigma, "gaussian").values[order(alpha)]
    assert found == pytest.approx(math.log(moment) / (alpha - 1), rel=1e-6)
    independent = alpha / sigma**2
    assert found < 0.2 * independent < independent < moment / (alpha - 1)


def test_the_data_dependent_cost_of_lnmax_by_hand():
    """Papernot et al. 2017, Theorem 3 and Lemma 4; its moment l is that of order l + 1, and gamma
    is 1/scale.
    """
    gamma, moment = 1 / 20, 8
    q = 2 * (2 + gamma * 250) / (4 * math.exp(gamma * 250))
    assert q < (math.exp(2 * gamma) - 1) / (math.exp(4 * gamma) - 1)
    bound = (1 - q) * ((1 - q) / (1 - math.exp(2 * gamma) * q)) ** moment + q * math.exp(
        2 * gamma * moment
    )
    found = data_dependent_release(AGREED, 20.0, "laplace").values[order(moment + 1)]
    assert found == pytest.approx(math.log(bound) / moment, rel=1e-6)
    assert found < 0.1 * release(20.0, 1, "laplace").rdp([moment + 1])[0] < bound / moment


def renyi(p, q, alpha):
    """Divergence of two coins that fall on heads with these probabilities."""
    return math.log(p**alpha * q ** (1 - alpha) + (1 - p) ** alpha * (1 - q) ** (1 - alpha)) / (
        alpha - 1
    )


def lead(mechanism, gap, noise):
    """Probability that the first of two classes wins with `gap` more votes."""
    if mechanism == "gaussian":
        return float(stats.norm.cdf(gap / (math.sqrt(2) * noise)))
    scaled = abs(gap) / noise
    loses = (2 + scaled) / (4 * math.exp(scaled))
    return 1 - loses if gap >= 0 else loses


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(MECHANISMS),
    st.integers(1, 60),
    st.integers(0, 60),
    st.floats(1.0, 30.0),
    st.sampled_from([1.1, 2.0, 5.0, 20.0]),
    st.sampled_from([-2, 2]),
)
def test_the_data_dependent_bound_holds_for_two_classes(
    mechanism, first, second, noise, alpha, change
):
    """A record moves one vote, and with it the difference of two counts by two; the exact
    divergence is that of two coins.
    """
    here, there = (lead(mechanism, gap, noise) for gap in (first - second, first - second + change))
    assume(min(here, there, 1 - here, 1 - there) > 1e-9)  # or rounding decides the exact divergence
    bound = data_dependent_release(
        torch.tensor([[float(first), float(second)]]), noise, mechanism
    ).values[order(alpha)]
    assert renyi(here, there, alpha) <= bound + 1e-9


@settings(max_examples=50, deadline=None)
@given(
    st.sampled_from(MECHANISMS),
    st.lists(st.lists(st.integers(0, 300), min_size=4, max_size=4), min_size=1, max_size=5),
    st.floats(0.1, 200.0),
)
def test_the_data_never_cost_more_than_the_worst_data(mechanism, counts, noise):
    found = data_dependent_release(torch.tensor(counts, dtype=torch.float32), noise, mechanism)
    worst = release(noise, len(counts), mechanism).rdp(ORDERS)
    assert (np.array(found.values) <= worst * (1 + 1e-12)).all()


@pytest.mark.parametrize("noise", [0, -1.0, math.inf, math.nan])
def test_noise_that_hides_nothing_is_refused(noise):
    for attempt in (
        lambda: release(noise, 1, "gaussian"),
        lambda: vote_share(torch.zeros(1, 2), noise, 2, "laplace", seeded()),
        lambda: data_dependent_release(AGREED, noise, "laplace"),
    ):
        with pytest.raises(ValueError, match="the noise must be positive"):
            attempt()


def test_an_unknown_mechanism_is_refused_naming_the_known():
    with pytest.raises(
        ValueError, match="unknown mechanism 'exponential'; known: gaussian, laplace"
    ):
        release(1.0, 1, "exponential")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_teachers_who_agree_more_cost_less(mechanism):
    cost = [
        epsilon(
            [data_dependent_release(torch.tensor([counts]).repeat(100, 1), 30.0, mechanism)], 1e-5
        )
        for counts in ([250.0, 0.0, 0.0], [200.0, 50.0, 0.0], [130.0, 120.0, 0.0])
    ]
    assert cost[0] < 0.7 * cost[1] < 0.7 * cost[2]
    assert cost[2] == pytest.approx(epsilon([release(30.0, 100, mechanism)], 1e-5))
