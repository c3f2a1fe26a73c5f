"""What is read of a method's source: settings that specs leave to its class, its line in `list`."""

import pytest

from fedtables.benchmarks.reporting.method_cards import summary
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.defaults import filled, settled, told_of
from fedtables.benchmarks.tables.spec import AS_CLASS, as_class

LEFT = {
    setting.name: setting
    for paper in registry.papers().values()
    for setting in paper.every_setting
    if setting.paper == AS_CLASS
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left_to_a_class_has_its_default_and_a_source(name):
    method, _, field = name.partition(".")
    whole = settled(LEFT[name])
    assert whole.paper == getattr(registry.find_method(method).load(), field)
    assert whole.where
    assert not whole.is_reduced("smoke")


def test_defaults_are_filled_in_for_the_methods_that_are_asked_for():
    config = {s.name: s.paper for s in (*as_class("fedad", "rho"), *as_class("feddf", "clip_norm"))}
    assert filled(config, {"fedad"}) == {"fedad.rho": 10.0, "feddf.clip_norm": AS_CLASS}
    assert filled({**config, "a": 1}) == {"fedad.rho": 10.0, "feddf.clip_norm": 5.0, "a": 1}


def test_a_method_is_told_as_its_class_has_it():
    entries = registry.methods()
    told = told_of(entries.values())
    for name, entry in entries.items():
        method = entry.load()
        assert set(told[name].sends) == method.sends, name
        assert told[name].summary, name
        assert summary(method).startswith(told[name].summary), name
    assert (told["fedprox"].base, told["fedavg"].base) == ("fedavg", "")
