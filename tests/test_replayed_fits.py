"""Every method whose steps are recorded and replayed fits what it fits when they are taken: no loss
that it trains by is another function in each step.
"""

from __future__ import annotations

import pytest

from federation.training import replay
from tests.methods.shards import same_bits
from tests.replayed_fits import REPLAYED_METHODS, THREE, TOGETHER, fitted
from tests.tape import Tape


@pytest.mark.parametrize("name", REPLAYED_METHODS)
def test_a_method_fits_the_same_when_its_steps_are_replayed(name, monkeypatch):
    taken = fitted(name)
    tape = Tape()
    monkeypatch.setitem(replay.RECORDERS, "cpu", lambda device: tape)
    replayed = fitted(name)
    assert tape.replayed
    for one, other in zip(taken, replayed, strict=True):
        assert same_bits(one.state, other.state)


@pytest.mark.parametrize("name", TOGETHER)
def test_clients_side_by_side_fit_what_they_fit_one_after_another(name, monkeypatch):
    alone = fitted(name, **THREE)
    tape = Tape()
    monkeypatch.setitem(replay.RECORDERS, "cpu", lambda device: tape)
    together = fitted(name, stacked=2, **THREE)
    assert tape.replayed
    for one, other in zip(alone, together, strict=True):
        assert same_bits(one.state, other.state)
