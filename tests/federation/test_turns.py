"""Trainings that take turns: their order, and what each has for itself."""

from contextvars import ContextVar

import pytest
import torch
from torch import nn

from fedtables.federation.execution import Execution
from fedtables.federation.graphs import side_by_side, take_turns

CPU = torch.device("cpu")
NAME: ContextVar[str] = ContextVar("name", default="nobody")


def test_each_takes_a_step_in_turn_until_all_have_ended():
    taken = []

    def training(name, steps):
        for number in range(steps):
            taken.append(f"{name}{number}")
            yield

    take_turns([training("a", 3), training("b", 1), training("c", 2)], CPU)
    assert taken == ["a0", "b0", "c0", "a1", "c1", "a2"]
    take_turns([], CPU)


def test_what_one_raises_ends_all_and_each_among_its_own_variables():
    ended = []

    def fails():
        yield
        raise ValueError("its loss is not a number")

    def goes_on():
        token = NAME.set("the other")
        try:
            while True:
                yield
        finally:
            ended.append(NAME.get())
            NAME.reset(token)

    with pytest.raises(ValueError, match="not a number"):
        take_turns([goes_on(), fails()], CPU)
    assert ended == ["the other"]


def test_networks_with_dropout_are_not_side_by_side():
    stacked, drops = Execution(stacked=2), nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    assert not side_by_side(stacked, drops)
    assert side_by_side(stacked, nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.0)))
    assert not side_by_side(Execution(compile="graphs"), nn.Linear(2, 2))
