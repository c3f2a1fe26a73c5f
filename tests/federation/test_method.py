"""The interface of methods: hyper-parameters are fields, `fit` is required, and a method declares
what it needs.
"""

import dataclasses
from dataclasses import dataclass

import pytest

from federation.method import Method


@dataclass(frozen=True)
class Example(Method):
    rounds: int = 3

    def fit(self, federation):
        return []


def test_a_method_without_an_algorithm_cannot_be_made():
    with pytest.raises(TypeError, match="fit"):
        Method()


def test_the_fields_of_a_method_are_its_hyper_parameters_and_nothing_else():
    assert [field.name for field in dataclasses.fields(Example)] == ["rounds"]
    assert Example(rounds=5).rounds == 5


def test_a_method_sends_nothing_and_knows_nothing_special_unless_it_says_so():
    assert (Example.sends, Example.oracle) == (frozenset(), frozenset())


def test_hyper_parameters_cannot_change_during_a_run():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Example().rounds = 4
