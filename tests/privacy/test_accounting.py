"""The privacy accountant: known numbers, an independent accountant, and the right directions."""

import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from privacy.accounting import GaussianSteps, epsilon

pytestmark = pytest.mark.filterwarnings("ignore:Optimal order is the")
REFERENCE = GaussianSteps(noise_multiplier=10, sample_rate=1 / 20, steps=32_000)


@pytest.mark.parametrize(
    ("accountant", "delta", "expected"), [("rdp", 1e-3, 3.10), ("rdp", 1e-5, 4.18), ("prv", 1e-3, 2.76), ("prv", 1e-5, 3.87)]
)
def test_a_known_schedule_costs_what_it_is_known_to_cost(accountant, delta, expected):
    assert epsilon([REFERENCE], delta, accountant) == pytest.approx(expected, abs=0.01)


def test_renyi_accounting_is_the_default():
    assert epsilon([REFERENCE], 1e-5) == epsilon([REFERENCE], 1e-5, "rdp")


def independent(accountant, part, delta):
    event = PoissonSampledDpEvent(part.sample_rate, GaussianDpEvent(part.noise_multiplier))
    return accountant.compose(event, part.steps).get_epsilon(delta)


GRID = [GaussianSteps(1.0, 0.01, 500), GaussianSteps(2.0, 0.05, 1000), GaussianSteps(4.0, 1.0, 10), GaussianSteps(0.8, 0.02, 100)]


@pytest.mark.parametrize("delta", [1e-3, 1e-5])
@pytest.mark.parametrize("part", GRID, ids=str)
def test_renyi_epsilon_agrees_with_googles_within_one_percent(part, delta):
    google = independent(RdpAccountant(neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE), part, delta)
    assert epsilon([part], delta, "rdp") == pytest.approx(google, rel=0.01)


@pytest.mark.parametrize("part", GRID[:2], ids=str)
def test_prv_epsilon_agrees_with_googles_privacy_loss_distribution_within_one_percent(part):
    google = independent(PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE, 1e-3), part, 1e-5)
    assert epsilon([part], 1e-5, "prv") == pytest.approx(google, rel=0.01)


def costs(parts, accountant):
    return [epsilon([GaussianSteps(*part)], 1e-5, accountant) for part in parts]


@pytest.mark.parametrize("accountant", ["rdp", "prv"])
@pytest.mark.parametrize(
    "parts",
    [
        [(4.0, 0.1, 200), (2.0, 0.1, 200), (1.0, 0.1, 200)],
        [(2.0, 0.1, 50), (2.0, 0.1, 200), (2.0, 0.1, 800)],
        [(2.0, 0.02, 200), (2.0, 0.1, 200), (2.0, 0.5, 200)],
    ],
    ids=["less noise", "more steps", "a higher rate"],
)
def test_privacy_is_spent_faster_by(parts, accountant):
    low, middle, high = costs(parts, accountant)
    assert 0 < low < middle < high


def test_a_smaller_delta_costs_a_larger_epsilon():
    assert epsilon([REFERENCE], 1e-6) > epsilon([REFERENCE], 1e-4)


def test_the_tighter_accountant_reports_less():
    assert epsilon([REFERENCE], 1e-5, "prv") < epsilon([REFERENCE], 1e-5, "rdp")


def test_steps_released_in_two_parts_cost_as_much_as_in_one():
    half = GaussianSteps(10, 1 / 20, 16_000)
    assert epsilon([half, half], 1e-5) == pytest.approx(epsilon([REFERENCE], 1e-5), rel=1e-9)


def test_what_else_is_released_adds_to_the_cost():
    assert epsilon([REFERENCE, GaussianSteps(5, 0.1, 100)], 1e-5) > epsilon([REFERENCE], 1e-5)


@pytest.mark.parametrize("accountant", ["rdp", "prv"])
def test_nothing_released_costs_nothing(accountant):
    assert epsilon([], 1e-5, accountant) == 0.0


def test_the_parts_may_come_from_a_generator():
    assert epsilon((part for part in [REFERENCE]), 1e-5) == epsilon([REFERENCE], 1e-5)


def test_an_unknown_accountant_is_refused_naming_the_known():
    with pytest.raises(ValueError, match="unknown accountant 'gdp'; known: rdp, prv"):
        epsilon([REFERENCE], 1e-5, "gdp")


@pytest.mark.parametrize("delta", [0, 1, -0.1, 2])
def test_a_delta_that_is_no_probability_is_refused(delta):
    with pytest.raises(ValueError, match="delta must lie in"):
        epsilon([REFERENCE], delta)


@pytest.mark.parametrize("part", [(0, 0.1, 10), (-1, 0.1, 10), (1, 0, 10), (1, 1.1, 10), (1, 0.1, 0)])
def test_impossible_steps_are_refused(part):
    with pytest.raises(ValueError, match="must be positive"):
        GaussianSteps(*part)
