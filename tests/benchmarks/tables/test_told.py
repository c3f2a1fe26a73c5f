"""What `list` says of a method is what its class says."""

from __future__ import annotations

from benchmarks.reporting.method_cards import summary
from benchmarks.tables import registry
from benchmarks.tables.told import told_of


def test_a_method_is_told_as_its_class_has_it():
    entries = registry.methods()
    told = told_of(entries.values())
    for name, entry in entries.items():
        method = entry.load()
        assert set(told[name].sends) == method.sends, name
        assert told[name].summary, name
        assert summary(method).startswith(told[name].summary), name
    assert (told["fedprox"].base, told["fedavg"].base) == ("fedavg", "")
