"""Releases: their divergences by hand and by another library, and what is refused."""

import json
import math

import numpy as np
import pytest
from dp_accounting import (
    LaplaceDpEvent,
)
from dp_accounting.rdp import RdpAccountant

from privacy.releases import ORDERS, GaussianSteps, LaplaceSteps, RenyiCurve, release_from_json

FLAT = RenyiCurve("flat", (0.1,) * len(ORDERS))
RELEASES = [GaussianSteps(2.0, 0.1, 5), LaplaceSteps(3.0, 7), FLAT]


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
    "part",
    [(0, 0.1, 10), (-1, 0.1, 10), (math.nan, 0.1, 10), (1, 0, 10), (1, 1.1, 10), (1, 0.1, 0)],
)
def test_impossible_steps_are_refused(part):
    with pytest.raises(ValueError, match="must be positive"):
        GaussianSteps(*part)


@pytest.mark.parametrize("part", [(0, 1), (-1, 1), (math.nan, 1), (1, 0)])
def test_impossible_laplace_steps_are_refused(part):
    with pytest.raises(ValueError, match="must be positive"):
        LaplaceSteps(*part)


@pytest.mark.parametrize(
    "values",
    [(), (0.1,), (-0.1,) * len(ORDERS), (math.inf,) * len(ORDERS), (math.nan,) * len(ORDERS)],
)
def test_impossible_curves_are_refused(values):
    with pytest.raises(
        ValueError, match=f"finite divergences, none negative, at the {len(ORDERS)} ORDERS"
    ):
        RenyiCurve("curve", values)


def test_a_curve_says_nothing_of_other_orders():
    with pytest.raises(ValueError, match="at ORDERS only"):
        FLAT.rdp([2, 3.14159])


@pytest.mark.parametrize("release", RELEASES, ids=["gaussian", "laplace", "curve"])
def test_a_release_survives_json(release):
    assert release_from_json(json.loads(json.dumps(release.to_json(), allow_nan=False))) == release


def test_an_unknown_kind_of_release_is_refused():
    with pytest.raises(
        ValueError, match="unknown kind of release 'exponential'; known: gaussian, laplace, curve"
    ):
        release_from_json({"kind": "exponential"})
