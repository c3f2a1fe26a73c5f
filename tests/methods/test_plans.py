"""What holds for the plan of every method."""

from __future__ import annotations

import pytest

from benchmarks.scenarios.small import shortened, small_method
from benchmarks.tables import registry
from federation.costs import Meter, metering
from tests.device_fits import federation_on

LENGTH_BY_NOISE = {"li-2019"}
"""Whose payloads are as long as noise decides."""


@pytest.mark.parametrize("name", sorted({*registry.methods()} - LENGTH_BY_NOISE))
def test_a_plan_books_the_bytes_of_the_run(name):
    method = shortened(small_method(registry.find_method(name)))
    real, planned = (federation_on(device, method) for device in ("cpu", "meta"))
    method.fit(real)
    with metering(Meter()):
        method.fit(planned)
    assert planned.channel.by_kind() == real.channel.by_kind()
