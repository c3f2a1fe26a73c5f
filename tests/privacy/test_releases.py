"""Releases: their divergences by hand and by another library, and what is refused."""

import json
import math

import numpy as np
import pytest
from dp_accounting import LaplaceDpEvent
from dp_accounting.rdp import RdpAccountant

from fedtables.privacy.releases import (
    ORDERS,
    GaussianSteps,
    LaplaceSteps,
    from_json,
    to_json,
    together,
)


@pytest.mark.parametrize("scale", [0.5, 2.0, 20.0])
def test_laplace_steps_diverge_as_googles_do(scale):
    google = RdpAccountant(orders=ORDERS).compose(LaplaceDpEvent(scale), 9)
    np.testing.assert_allclose(LaplaceSteps(scale, 9).rdp(ORDERS), google.rdp, rtol=1e-6)


def test_the_divergence_of_laplace_noise_is_the_formula_of_its_paper():
    order, scale = 3.0, 2.0  # Mironov 2017, Table II
    moment = order / (2 * order - 1) * math.exp((order - 1) / scale) + (order - 1) / (
        2 * order - 1
    ) * math.exp(-order / scale)
    assert LaplaceSteps(scale, 4).rdp([order]) == pytest.approx(4 * math.log(moment) / (order - 1))


def test_the_unsampled_gaussian_diverges_by_half_the_order_over_the_variance():
    assert GaussianSteps(2.0, 1.0, 3).rdp([2, 8]) == pytest.approx([3 * 2 / 8, 3 * 8 / 8])


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        *[(GaussianSteps, part) for part in ((0, 0.1, 9), (math.nan, 0.1, 9), (1, 0, 9))],
        *[(GaussianSteps, part) for part in ((1, 1.1, 9), (1, 0.1, 0))],
        *[(LaplaceSteps, part) for part in ((0, 1), (math.nan, 1), (1, 0))],
    ],
)
def test_impossible_steps_are_refused(kind, part):
    with pytest.raises(ValueError, match="must be positive"):
        kind(*part)


@pytest.mark.parametrize("release", [GaussianSteps(2.0, 0.1, 5), LaplaceSteps(3.0, 7)], ids=str)
def test_a_release_survives_json(release):
    assert from_json(json.loads(json.dumps(to_json(release), allow_nan=False))) == release


def test_releases_of_one_mechanism_are_one_whatever_came_between():
    step, noise = GaussianSteps(2.0, 1.0, 1), LaplaceSteps(5.0, 2)
    others = (GaussianSteps(2.0, 0.5, 1), LaplaceSteps(6.0, 1))
    found = together([*[step, noise] * 3, *others])
    assert found == (GaussianSteps(2.0, 1.0, 3), LaplaceSteps(5.0, 6), *others)
