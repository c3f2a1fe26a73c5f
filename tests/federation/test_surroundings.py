"""What computations find around them: put back, and the run's own for a stage."""

from __future__ import annotations

import os
import random
import warnings

import numpy as np
import pytest
import torch

from federation.cache import Stage, StageCache
from federation.surroundings import FLAGS, as_now, flags, put_back
from tests.federation.stages import request

OTHERS = {
    "default dtype": torch.float64,
    "default device": torch.device("meta"),
    "number of threads": 3,
    "deterministic algorithms": (True, True),
    "precision of products": "medium",
}
"""Values that no flag has when a test begins; of the others it is the opposite."""


@pytest.fixture(autouse=True)
def kept():
    with put_back():
        yield


def other(name):
    return OTHERS.get(name, not flags()[name])


@pytest.mark.parametrize("name", FLAGS)
def test_every_flag_is_put_back(name):
    before, value = flags(), other(name)
    with put_back():
        FLAGS[name].put(value)
        assert flags()[name] == value
        assert flags() != before
    assert flags() == before


def test_generators_environment_and_warnings_are_put_back(monkeypatch):
    monkeypatch.setenv("KEPT", "1")
    filters, errors = list(warnings.filters), np.geterr()

    def drawn():
        return random.random(), np.random.rand(), torch.rand(1).item()

    def leave_behind():
        torch.manual_seed(5)
        random.seed(5)
        np.random.seed(5)
        os.environ.update(KEPT="2", LEFT="3")
        warnings.simplefilter("error")
        np.seterr(all="raise")

    with put_back():
        expected = drawn()
    with put_back():
        leave_behind()
    assert drawn() == expected
    assert (os.environ["KEPT"], "LEFT" in os.environ) == ("1", False)
    assert (list(warnings.filters), np.geterr()) == (filters, errors)


@pytest.mark.parametrize("name", ["default dtype", "number of threads", "cudnn.deterministic"])
def test_a_stage_is_computed_under_the_flags_of_its_run_and_leaves_those_of_its_caller(name):
    seen = []

    def compute():
        seen.append(flags())
        FLAGS[name].put(first[name])
        FLAGS["gradients"].put(False)
        return Stage({"x": torch.zeros(1)})

    with as_now():
        first = flags()
        FLAGS[name].put(other(name))
        changed = flags()
        StageCache(None).get(request(compute=compute))
        assert seen == [first]
        assert flags() == changed
