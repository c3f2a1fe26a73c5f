"""The privacy accountant: known numbers, an independent accountant, the right directions, and a
ledger that ends in time.
"""

import json
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st

from fedtables.privacy.accounting import Accountant, BudgetExhaustedError, calibrate, epsilon
from fedtables.privacy.releases import ORDERS, GaussianSteps, LaplaceSteps, RenyiCurve

REFERENCE = GaussianSteps(noise_multiplier=10, sample_rate=1 / 20, steps=32_000)
FLAT = RenyiCurve((0.1,) * len(ORDERS))


@pytest.mark.parametrize(
    ("accountant", "delta", "expected"),
    [("rdp", 1e-3, 3.10), ("rdp", 1e-5, 4.18), ("prv", 1e-3, 2.76), ("prv", 1e-5, 3.87)],
)
def test_a_known_schedule_costs_what_it_is_known_to_cost(accountant, delta, expected):
    assert round(epsilon([REFERENCE], delta, accountant), 2) == expected


def independent(accountant, part, delta):
    event = PoissonSampledDpEvent(part.sample_rate, GaussianDpEvent(part.noise_multiplier))
    return accountant.compose(event, part.steps).get_epsilon(delta)


GRID = [
    GaussianSteps(1.0, 0.01, 500),
    GaussianSteps(2.0, 0.05, 1000),
    GaussianSteps(4.0, 1.0, 10),
    GaussianSteps(0.8, 0.02, 100),
    GaussianSteps(1.07, 1 / 1000, 640_000),
    GaussianSteps(20.0, 0.3, 3000),
]


@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize("part", GRID, ids=str)
def test_renyi_epsilon_agrees_with_googles_within_one_percent(part, delta):
    google = independent(
        RdpAccountant(neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE), part, delta
    )
    assert epsilon([part], delta, "rdp") == pytest.approx(google, rel=0.01)


@pytest.mark.parametrize("part", GRID[:2], ids=str)
def test_prv_epsilon_agrees_with_googles_privacy_loss_distribution_within_one_percent(part):
    google = independent(PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE, 1e-3), part, 1e-5)
    assert epsilon([part], 1e-5, "prv") == pytest.approx(google, rel=0.01)


SENSIBLE = [
    GaussianSteps(1000.0, 1.0, 1),
    GaussianSteps(1000.0, 1.0, 100_000),
    GaussianSteps(1000.0, 0.01, 1),
    GaussianSteps(0.3, 0.1, 1000),
    GaussianSteps(0.0075, 1.0, 1),
    LaplaceSteps(1.0, 1),
    LaplaceSteps(0.01, 50),
]


@pytest.mark.parametrize("part", SENSIBLE, ids=str)
def test_no_sensible_release_has_its_best_order_at_the_end_of_the_range(part):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert 0 < epsilon([part], 1e-5) < 11_000


@pytest.mark.parametrize(
    "part",
    [GaussianSteps(1000.0, 1.0, 1), GaussianSteps(30.0, 1.0, 7), GaussianSteps(0.0075, 1.0, 1)],
)
def test_the_orders_are_fine_enough_for_much_and_for_little_noise(part):
    """Against the best of all orders, found by itself: for the Gaussian mechanism the curve is a
    line.
    """
    slope, delta = part.steps / (2 * part.noise_multiplier**2), 1e-5
    orders = 1 + np.logspace(-4, 9, 200_000)
    best = (slope * orders + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1)).min()
    assert best - 1e-9 <= epsilon([part], delta) <= 1.005 * best


noises = st.floats(0.5, 50.0)
rates = st.sampled_from([0.001, 0.05, 0.3, 0.7, 1.0])
steps = st.integers(1, 10_000)
deltas = st.floats(1e-8, 1e-2)


@settings(max_examples=10, deadline=None)
@given(noises, rates, steps, deltas, st.floats(1.0, 4.0), st.integers(0, 10_000))
def test_less_noise_more_steps_a_smaller_delta_and_a_higher_rate_never_cost_less(
    noise, rate, count, delta, factor, more
):
    cost = epsilon([GaussianSteps(noise, rate, count)], delta)
    slack = 1e-9 + 1e-6 * cost  # rounding
    assert epsilon([GaussianSteps(noise / factor, rate, count)], delta) >= cost - slack
    assert epsilon([GaussianSteps(noise, rate, count + more)], delta) >= cost - slack
    assert epsilon([GaussianSteps(noise, rate, count)], delta / factor) >= cost - slack
    assert epsilon([GaussianSteps(noise, min(1.0, 2 * rate), count)], delta) >= cost - slack


@settings(max_examples=50, deadline=None)
@given(
    st.floats(0.05, 100.0), st.integers(1, 1000), deltas, st.floats(1.0, 4.0), st.integers(0, 1000)
)
def test_laplace_steps_cost_more_the_less_noise_and_never_more_than_their_pure_epsilons(
    scale, count, delta, factor, more
):
    cost = epsilon([LaplaceSteps(scale, count)], delta)
    slack = 1e-9 + 1e-6 * cost
    assert cost <= count / scale + slack
    assert epsilon([LaplaceSteps(scale / factor, count)], delta) >= cost - slack
    assert epsilon([LaplaceSteps(scale, count + more)], delta) >= cost - slack


@pytest.mark.parametrize(
    "other",
    [GaussianSteps(5, 0.1, 100), LaplaceSteps(20.0, 100), FLAT],
    ids=["gaussian", "laplace", "curve"],
)
def test_what_else_is_released_adds_to_the_cost(other):
    assert epsilon([REFERENCE, other], 1e-5) > max(
        epsilon([REFERENCE], 1e-5), epsilon([other], 1e-5)
    )


def test_nothing_costs_nothing_and_an_epsilon_is_never_negative():
    assert epsilon([], 1e-5) == epsilon([], 1e-5, "prv") == 0.0
    assert epsilon([GaussianSteps(1e6, 1.0, 1)], 0.01) == 0.0


def test_an_unknown_accountant_is_refused_naming_the_known():
    with pytest.raises(ValueError, match="unknown accountant 'gdp'; known: rdp, prv"):
        epsilon([REFERENCE], 1e-5, "gdp")


@pytest.mark.parametrize("delta", [0, 1, -0.1, 2, math.nan])
def test_a_delta_that_is_no_probability_is_refused(delta):
    with pytest.raises(ValueError, match="delta must lie in"):
        epsilon([REFERENCE], delta)


def test_prv_refuses_what_it_cannot_compose():
    with pytest.raises(ValueError, match="GaussianSteps only, not LaplaceSteps; use 'rdp'"):
        epsilon([REFERENCE, LaplaceSteps(1.0, 1)], 1e-5, "prv")


@settings(max_examples=3, deadline=None)
@given(st.floats(0.2, 200.0), st.sampled_from([0.01, 0.1, 1.0]), st.integers(1, 5000))
def test_calibration_finds_the_noise_that_was_paid_for(target, rate, count):
    noise = calibrate(lambda sigma: [GaussianSteps(sigma, rate, count)], target, 1e-5)
    assert 0.995 * target <= epsilon([GaussianSteps(noise, rate, count)], 1e-5) <= target
    assert epsilon([GaussianSteps(noise / 1.0011, rate, count)], 1e-5) > target


@pytest.mark.parametrize(
    ("target", "beside", "message"),
    [
        (1.0, [GaussianSteps(1.0, 1.0, 1)], r"no noise meets the target .*raise the target"),
        (math.inf, [], "must be positive and finite"),
        (0.0, [], "must be positive and finite"),
    ],
)
def test_an_impossible_target_is_refused(target, beside, message):
    with pytest.raises(ValueError, match=message):
        calibrate(lambda noise: [GaussianSteps(noise, 1.0, 1), *beside], target, 1e-5)


def test_a_target_that_needs_no_noise_is_refused():
    with pytest.raises(ValueError, match="every noise meets the target"):
        calibrate(lambda noise: [GaussianSteps(10.0, 1.0, 1)], 5.0, 1e-5)


STEP = GaussianSteps(2.0, 1.0, 1)


def steps_within(budget, accountant="rdp"):
    return next(
        n for n in range(1, 100) if epsilon([replace(STEP, steps=n + 1)], 1e-5, accountant) > budget
    )


@pytest.mark.parametrize("accountant", ["rdp", "prv"])
def test_a_run_stops_at_the_last_step_that_its_budget_affords(accountant):
    ledger, taken = Accountant(8.0, 1e-5, accountant), 0
    while ledger.affords(0, STEP):
        ledger.spend(0, STEP)
        taken += 1
    assert taken == steps_within(8.0, accountant)
    assert ledger.epsilon() == pytest.approx(
        epsilon([replace(STEP, steps=taken)], 1e-5, accountant)
    )
    assert ledger.epsilon() <= 8.0


@pytest.mark.parametrize("accountant", ["rdp", "prv"])
def test_what_would_pass_the_budget_is_refused_and_not_booked(accountant):
    ledger = Accountant(10.0, 1e-5, accountant)
    ledger.spend(0, replace(STEP, steps=5))
    before = ledger.epsilon(), ledger.releases(0)
    asked = epsilon([replace(STEP, steps=45)], 1e-5, accountant)
    with pytest.raises(
        BudgetExhaustedError,
        match=rf"party 0 has spent epsilon {before[0]:.6g} of 10 .* make it {asked:.6g}",
    ):
        ledger.spend(0, replace(STEP, steps=40))
    assert (ledger.epsilon(), ledger.releases(0)) == before
    ledger.spend(0, STEP)


def test_a_budget_is_met_to_its_last_digit():
    budget = epsilon([replace(STEP, steps=7)], 1e-5)
    ledger = Accountant(budget, 1e-5)
    for _ in range(7):
        ledger.spend(0, STEP)
    assert not ledger.affords(0, STEP)


def test_the_run_has_spent_what_the_party_that_spent_most_has():
    ledger = Accountant(math.inf, 1e-5)
    ledger.spend(0, STEP)
    ledger.spend(7, replace(STEP, steps=9))
    assert ledger.epsilon() == ledger.epsilon(7) == epsilon([replace(STEP, steps=9)], 1e-5)
    assert ledger.epsilon(0) == epsilon([STEP], 1e-5)
    assert ledger.epsilon(3) == 0.0


def test_an_interrupted_ledger_goes_on_as_if_it_had_not_been():
    whole, first, second = (Accountant(10.0, 1e-5) for _ in range(3))
    for _ in range(3):
        whole.spend(4, STEP)
        first.spend(4, STEP)
    second.load_state_dict(json.loads(json.dumps(first.state_dict(), allow_nan=False)))
    for ledger in (whole, second):
        while ledger.affords(4, STEP):
            ledger.spend(4, STEP)
    assert second.to_json() == whole.to_json()


def test_a_record_names_the_conventions_and_the_releases_that_cost_most():
    ledger = Accountant(10.0, 1e-5)
    ledger.spend(0, STEP)
    ledger.spend(1, replace(STEP, steps=2))
    record = json.loads(json.dumps(ledger.to_json(), allow_nan=False))
    assert record["releases"] == [
        {"kind": "gaussian", "noise_multiplier": 2.0, "sample_rate": 1.0, "steps": 2}
    ]
    assert record.pop("epsilon") == epsilon([replace(STEP, steps=2)], 1e-5)
    del record["releases"]
    assert record == {
        "budget": 10.0,
        "delta": 1e-5,
        "accountant": "rdp",
        "adjacency": "add or remove one record",
        "sampling": "none",
        "composition": "adaptive, Rényi divergences added at each order",
        "parties": 2,
    }
    ledger.spend(1, replace(STEP, sample_rate=0.1))
    assert ledger.to_json()["sampling"] == "Poisson"


@pytest.mark.parametrize(
    ("opened", "message"),
    [
        ((0, 1e-5), "budget must be a positive epsilon"),
        ((math.nan, 1e-5), "budget must be a positive epsilon"),
        ((1.0, 1e-5, "gdp"), "unknown accountant"),
        ((1.0, 0), "delta must lie in"),
    ],
)
def test_an_impossible_ledger_is_refused_when_it_is_opened(opened, message):
    with pytest.raises(ValueError, match=message):
        Accountant(*opened)
