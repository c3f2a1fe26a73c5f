"""Tables whose cells are looked at."""

import pytest

from fedtables.benchmarks.tables import registry


@pytest.fixture
def table1():
    return registry.find_table("fediod/table1")


@pytest.fixture
def table2():
    return registry.find_table("dlad/table2")
