"""Ways of running: their names, and what cannot be run."""

import pytest

from fedtables.federation.execution import DEFAULT, Execution


@pytest.mark.parametrize(
    ("execution", "label"),
    [
        (DEFAULT, ""),
        (Execution(precision="bf16", compile="default"), "bf16-compiled"),
        (Execution(precision="tf32", compile="graphs"), "tf32-graphs"),
        (Execution(compile="graphs", stacked=8), "graphs-stacked8"),
    ],
)
def test_a_way_of_running_is_named_by_what_differs_from_the_default(execution, label):
    assert execution.label == label


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"precision": "fp16"}, "unknown precision 'fp16'; known: fp32, tf32, bf16"),
        ({"precision": ""}, "unknown precision ''"),
        (
            {"compile": "max-autotune"},
            "unknown compile 'max-autotune'; known: off, default, graphs",
        ),
        ({"stacked": 0}, "stacked must be at least 1, not 0"),
    ],
)
def test_a_value_that_does_not_exist_is_refused_with_those_that_do(changes, message):
    with pytest.raises(ValueError, match=message):
        Execution(**changes)


def test_clients_are_not_stacked_compiled():
    with pytest.raises(ValueError, match="use one of stacked and compile"):
        Execution(stacked=2, compile="default")
