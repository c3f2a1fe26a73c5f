"""What computations find around them: put back, and the run's own for a stage."""

import os
import random
import warnings

import numpy as np
import pytest
import torch
from torch._inductor import config as inductor

from fedtables.federation.cache import Stage, StageCache
from fedtables.federation.surroundings import FLAGS, MIXED, as_now, flags, flags_of_run, put_back
from tests.federation.stages import request

OTHERS = {
    "default dtype": torch.float64,
    "default device": torch.device("meta"),
    "number of threads": 3,
    "deterministic algorithms": 1,
    "autocast on the CPU": (True, torch.float16),
    "autocast on CUDA": (True, torch.bfloat16),
    "precision of products": "medium",
}
"""Values that no flag has when a test begins; of the others it is the opposite."""


@pytest.fixture(autouse=True)
def kept():
    with put_back():
        yield


def other(name):
    value = flags()[name]
    if name.endswith(" precision"):
        return "ieee" if value == "tf32" else "tf32"
    return OTHERS.get(name, not value)


@pytest.mark.parametrize("name", FLAGS)
def test_every_flag_is_put_back(name):
    before, value = flags(), other(name)
    with put_back():
        FLAGS[name][1](value)
        assert flags()[name] in (value, MIXED)
        assert flags() != before
    assert flags() == before


def test_what_compiles_is_as_deterministic_as_before():
    before = inductor.deterministic
    with put_back():
        torch.use_deterministic_algorithms(not before)
        assert inductor.deterministic != before
    assert inductor.deterministic == before


def test_all_flags_are_put_back_where_a_cell_fails():
    before = flags()
    with pytest.raises(ZeroDivisionError), put_back():  # noqa: PT012
        for name in FLAGS:
            FLAGS[name][1](other(name))
        _ = 1 / 0
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
        FLAGS[name][1](first[name])
        FLAGS["gradients"][1](False)
        return Stage({"x": torch.zeros(1)})

    with as_now():
        first = flags()
        FLAGS[name][1](other(name))
        changed = flags()
        StageCache(None).get(request(compute=compute))
        assert seen == [first]
        assert flags() == changed


def test_outside_of_a_run_flags_are_the_callers():
    torch.set_default_dtype(torch.float64)
    with flags_of_run():
        assert torch.get_default_dtype() == torch.float64
