"""What is said of a method: a verdict on every promise, with a place in its file."""

from __future__ import annotations

import types
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from benchmarks.contract import verdicts
from benchmarks.contract.promises import CHECKS
from federation.method import Method


@dataclass(frozen=True)
class Gambler(Method):
    """Draws from a generator that no seed reaches."""

    def fit(self, federation):
        drawn = torch.rand(len(federation.public), 10)
        return federation.distill(drawn.softmax(dim=1))


@dataclass(frozen=True)
class Renamed(Gambler):
    """Has no fit of its own."""


@dataclass(frozen=True)
class Crasher(Method):
    """Ends in the middle of its fit."""

    def fit(self, federation):
        size = len(federation.public)
        return size / 0


def test_of_a_method_that_does_not_repeat_itself_nothing_further_is_compared(monkeypatch):
    monkeypatch.setattr(verdicts, "small_method", lambda entry: entry())
    learns, repeats, *others = verdicts.judge(Gambler)
    assert (learns.word, repeats.word) == (verdicts.BROKEN, verdicts.BROKEN)
    assert {verdict.word for verdict in others} == {verdicts.NOT_JUDGED}
    assert len(others) == len(CHECKS) - 2


def test_a_finding_has_the_line_of_the_methods_fit_of_its_class_or_of_the_error():
    source = Path(__file__).read_text().splitlines()

    def line_of(method, error=None):
        path, _, number = verdicts.place(method, error).rpartition(":")
        assert Path(path) == Path(__file__)
        return source[int(number) - 1].strip()

    assert line_of(Gambler()) == "def fit(self, federation):"
    assert source[source.index("class Renamed(Gambler):") - 1] == line_of(Renamed())
    with pytest.raises(ZeroDivisionError) as raised:
        Crasher().fit(federation=types.SimpleNamespace(public=[]))
    assert line_of(Crasher(), raised.value) == "return size / 0"
