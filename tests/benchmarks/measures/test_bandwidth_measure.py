"""Bytes that had crossed when a history's values were measured."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.measures.final import crossed, measure_traffic
from federation.channel import Transfer
from federation.data import Checkpoint
from results.record import Measurement


def transfers(*entries):
    """Messages up of (round, bytes), of one client."""
    return [Transfer(number, "up", "logits", 0, size) for number, size in entries]


LEDGER = [
    Transfer(0, "up", "labels", 0, 5),
    Transfer(1, "down", "parameters", 0, 10),
    Transfer(1, "up", "parameters", 1, 20),
    Transfer(2, "up", "parameters", 0, 100),
    Transfer(3, "down", "images", 0, 1000),
    Transfer(3, "up", "logits", 0, 3),
]


def test_a_history_with_a_value_per_round_has_the_bytes_until_then_both_ways_and_of_all_clients():
    assert crossed(LEDGER, 3) == [35, 135, 1138]
    assert crossed(LEDGER, 3, rounds=3) == [35, 135, 1138]


@pytest.mark.parametrize("count", [1, 2, 4, 30])
def test_a_model_trained_after_the_rounds_had_all_bytes_at_once(count):
    assert crossed(LEDGER, count) == [1138] * count


def test_a_round_beyond_the_methods_own_means_that_the_model_was_trained_after_it():
    # FedMD with two rounds books a third; a central model of three epochs has as many values, and
    # all bytes at once.
    assert crossed(LEDGER, 3, rounds=2) == [1138] * 3


@given(
    sizes=st.lists(
        st.tuples(
            st.integers(0, 6),
            st.sampled_from(["up", "down"]),
            st.integers(0, 3),
            st.integers(1, 10**12),
        )
    ),
    count=st.integers(1, 8),
)
def test_bytes_never_fall_and_end_with_all(sizes, count):
    ledger = [
        Transfer(number, direction, "logits", client, size)
        for number, direction, client, size in sizes
    ]
    found = crossed(ledger, count)
    assert len(found) == count
    assert found == sorted(found)
    assert found[-1] == sum(size for *_, size in sizes)


def checkpoint(values):
    return Checkpoint("net", 10, {}, "server", "", {"accuracy": values})


def test_rounds_are_measured_in_gigabytes_and_percent():
    found, how = measure_traffic("accuracy", 100, [checkpoint([0.125, 0.5, 0.25])], LEDGER, 3)
    assert found[:2] == (
        Measurement("accuracy", 12.5, "round=1", 1, 1),
        Measurement("bandwidth-gb", 35e-9, "round=1"),
    )
    assert found[-2:] == (
        Measurement("accuracy", 25.0, "round=3", 1, 1),
        Measurement("bandwidth-gb", 1138e-9, "round=3"),
    )
    assert how == "after each of 3 rounds, with the bytes until then"


def test_several_models_are_averaged():
    found, how = measure_traffic(
        "accuracy", 1, [checkpoint([0.5, 0.5]), checkpoint([0.25, 1.0])], transfers((0, 9)), None
    )
    assert [m.value for m in found if m.metric == "accuracy"] == [0.375, 0.75]
    assert how == "after each of 2 epochs, when all bytes had crossed, mean over models"
