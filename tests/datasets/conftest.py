"""No set that one test has loaded is seen by another."""

import pytest

from fedtables.datasets.catalogue import load


@pytest.fixture(autouse=True)
def fresh_loads():
    load.cache_clear()
    yield
    load.cache_clear()
