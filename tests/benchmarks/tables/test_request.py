"""Requests: texts of a command line and values of a notebook mean the same."""

import inspect
from pathlib import Path

import pytest

from fedtables.benchmarks.tables.request import Request, requested, takes
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.federation.execution import DEFAULT, FAST


def test_texts_and_values_make_the_same_request():
    texts = requested(
        only=["dataset=mnist", "row=a", "row=b,c"],
        seeds="0, 2",
        settings=["local.epochs=3"],
        plugins=[Path("mine.py")],
        jobs="2",
        minutes="1.5",
        results="out",
    )
    values = requested(
        only={"dataset": "mnist", "row": ["a", "b,c"]},
        seeds=range(0, 3, 2),
        settings={"local.epochs": "3"},
        plugins=("mine.py",),
        jobs=2,
        minutes=1.5,
        results=Path("out"),
    )
    assert texts == values
    assert values.only == {"dataset": ("mnist",), "row": ("a", "b,c")}
    assert (values.seeds, values.jobs, values.minutes) == ((0, 2), 2, 1.5)


def test_what_nobody_asks_for_is_as_the_class_says():
    assert requested() == Request(only={}, settings={})
    assert Request().run_device == "cpu"
    assert Request(profile="paper").run_device == "cuda"
    assert Request(profile="paper").execution == Request(profile="gpu").execution == FAST
    assert Request(profile="paper", device="cpu").execution == DEFAULT
    assert Request(profile="cpu", device="cuda").execution == DEFAULT
    assert Request(profile="paper", precision="fp32").execution == DEFAULT


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"profile": "huge"}, "--profile huge: no such value"),
        ({"seeds": "0,0"}, "--seeds takes different whole numbers"),
        ({"seeds": [0.5]}, "--seeds takes different whole numbers"),
        ({"jobs": -1}, "jobs: -1 is not a whole number from 0"),
        ({"threads": 0}, "threads: 0 is not a whole number from 1"),
        ({"num_gpus": "many"}, "num-gpus: 'many' is not a number"),
        ({"device": "gpu"}, "--device gpu: no such value"),
        ({"only": ["dataset"]}, "--only takes key=value"),
        ({"settings": ["local.epochs="]}, "--set takes setting=value"),
        ({"job": 2}, "option job: no such value; did you mean jobs"),
    ],
)
def test_what_an_option_does_not_take_is_refused(given, message):
    with pytest.raises(SpecError, match=message):
        requested(**given)


def test_a_function_gets_the_request_and_shows_the_options_that_it_takes():
    @takes("seeds", "fresh", typed=True)
    def run(request, table, *, quiet=False):
        return request.seeds, request.fresh, table, quiet

    assert run("dlad/table2", seeds=[3], quiet=True) == ((3,), False, "dlad/table2", True)
    shown = inspect.signature(run).parameters
    assert list(shown) == ["table", "quiet", "seeds", "fresh"]
    assert shown["seeds"].default == (0,)
    with pytest.raises(TypeError, match="jobs"):
        run("dlad/table2", jobs=2)
