"""What clients fit side by side, by recorded steps. That replayed steps teach every method the same
is a promise of the contract.
"""

import pytest

from fedtables.federation.graphs import on_the_cpu
from tests.methods.shards import same_bits
from tests.replayed_fits import THREE, TOGETHER, fitted


@pytest.mark.parametrize("name", TOGETHER)
def test_clients_side_by_side_fit_what_they_fit_one_after_another(name):
    alone = fitted(name, **THREE)
    with on_the_cpu() as tape:
        together = fitted(name, stacked=2, **THREE)
    assert tape.replayed
    for one, other in zip(alone, together, strict=True):
        assert same_bits(one.state, other.state)
