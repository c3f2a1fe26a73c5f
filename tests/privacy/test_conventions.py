"""The same mechanism under each convention: the numbers of the libraries that the papers' code
used.
"""

import math

import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation, SampledWithoutReplacementDpEvent
from dp_accounting.rdp import RdpAccountant

from fedtables.privacy.conventions import readings, replaced_epsilon
from fedtables.privacy.releases import GaussianSteps

AUTODP = [
    *[(1e-3, 1, 1.020), (1e-3, 100, 5.243), (1e-3, 500, 10.124)],
    *[(1e-5, 1, 1.429), (1e-5, 100, 7.348), (1e-5, 500, 14.700)],
]
"""What autodp 0.2.3.1 says of noise multiplier 10 and sample rate 1/20 after 64 compositions per
epoch."""


@pytest.mark.parametrize(("delta", "epochs", "expected"), AUTODP)
def test_the_general_bound_is_that_of_the_accountant_of_fediods_release(delta, epochs, expected):
    mechanism = GaussianSteps(10, 1 / 20, 64 * epochs)
    found = replaced_epsilon(mechanism, delta, tight=False)
    assert found == pytest.approx(expected, abs=6e-4)


@pytest.mark.parametrize(
    "part", [(2.0, 0.01, 1000), (1.0, 0.1, 100), (0.7, 0.01, 100), (1.07, 0.001, 640_000)], ids=str
)
def test_the_tight_bound_agrees_with_googles_within_one_percent(part):
    noise, rate, steps = part
    event = SampledWithoutReplacementDpEvent(100_000, round(100_000 * rate), GaussianDpEvent(noise))
    google = (
        RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)
        .compose(event, steps)
        .get_epsilon(1e-5)
    )
    assert replaced_epsilon(GaussianSteps(*part), 1e-5, tight=True) == pytest.approx(
        google, rel=0.01
    )


def test_one_order_of_the_general_bound_by_hand():
    """With this much noise and so large a delta the best order is 2, where the bound has one
    term.
    """
    noise, rate, steps, delta = 0.5, 0.01, 1000, 0.1
    divergence = 2 / (2 * noise**2)
    moment = rate**2 * min(4 * (math.exp(divergence) - 1), 2 * math.exp(divergence))
    by_hand = steps * math.log(1 + moment) + math.log(1 / delta)
    assert replaced_epsilon(GaussianSteps(noise, rate, steps), delta, tight=False) == pytest.approx(
        by_hand
    )


def test_every_convention_is_read_and_named():
    mechanism = GaussianSteps(10, 1 / 20, 32_000)
    found = {reading.name: reading for reading in readings(mechanism, 1e-3)}
    assert {name: round(reading.epsilon, 2) for name, reading in found.items()} == {
        "rdp": 3.10,
        "prv": 2.76,
        "general": 10.12,
        "tight": 7.34,
    }
    assert {reading.adjacency for reading in found.values()} == {
        "add or remove one record",
        "replace one record",
    }
    assert (found["general"].sampling, found["rdp"].sampling) == ("without replacement", "Poisson")
    assert "Theorem 9" in found["general"].bound


def test_the_general_bound_gives_gs_wgans_epsilon():
    assert replaced_epsilon(
        GaussianSteps(1.07, 1 / 1000, 20_000 * 32), 1e-5, tight=False
    ) == pytest.approx(9.993, abs=6e-4)
