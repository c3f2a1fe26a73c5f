"""From a run's history to its numbers, and the bytes that had crossed by then."""

import math
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedtables.benchmarks.measures.final import (
    MEASURES,
    crossed,
    epochs_of,
    statistic_name,
    statistic_of,
)
from fedtables.benchmarks.scenarios.configuration import EvaluationSettings
from fedtables.benchmarks.tables.measure import count_in
from fedtables.federation.channel import Transfer
from fedtables.results.record import Measurement

LAST, LAST_THREE = EvaluationSettings(), EvaluationSettings(last_epochs=3)
BEST = EvaluationSettings(statistic="best")


def test_the_last_value_the_median_of_the_last_or_the_best():
    history = [0.1, 0.9, 0.2, 0.6, 0.4]
    assert [statistic_of("accuracy", history, how) for how in (LAST, LAST_THREE, BEST)] == [
        0.4,
        0.4,
        0.9,
    ]
    assert statistic_of("accuracy", [0.3, 0.1], LAST_THREE) == pytest.approx(
        0.2
    )  # all, where there are fewer


def test_the_best_of_a_metric_that_should_be_low_is_the_lowest():
    assert statistic_of("hd95", [9.0, 3.0, 5.0], BEST) == 3
    assert statistic_of("dice", [0.9, 0.3, 0.5], BEST) == 0.9
    assert statistic_of("a plug-in's metric", [9.0, 3.0, 5.0], BEST) == 9


def test_a_number_of_epochs_of_which_one_has_none_is_none():
    history = [1.0, math.nan, 3.0]
    assert statistic_of("hd95", history, LAST) == 3
    assert math.isnan(statistic_of("hd95", history, LAST_THREE))


def test_a_number_is_a_mean_of_the_fewest_values_of_any_of_its_epochs():
    history = {"hd95": [9.0, 3.0, 5.0], "hd95#defined": [610, 112, 300], "hd95#of": [610] * 3}
    counts = [
        count_in(history, "hd95", epochs_of("hd95", history["hd95"], how))
        for how in (LAST, LAST_THREE, BEST)
    ]
    assert counts == [(300, 610), (112, 610), (112, 610)]
    assert count_in({"accuracy": [0.5]}, "accuracy") == (1, 1)
    assert count_in({"accuracy": [math.nan]}, "accuracy") == (0, 1)


def test_the_text_says_how_the_number_was_made():
    histories = [[0.1] * 7, [0.1] * 5]
    assert statistic_name(histories, LAST) == "after the last of 5 epochs or rounds"
    assert statistic_name(histories, LAST_THREE) == "median of the last 3 epochs"
    assert statistic_name([[0.1] * 2], LAST_THREE) == "median of the last 2 epochs"
    assert statistic_name([[0.1]], LAST_THREE) == "after the last of 1 epochs or rounds"
    some = EvaluationSettings(looks=5)
    assert statistic_name(histories, some) == "at the end of a run that was looked at 5 times"
    best = statistic_name(histories, BEST)
    assert best.startswith("best of 5 epochs or rounds by test accuracy")
    assert "optimistic" in best


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


def traffic(histories, ledger, rounds=None, percent=1):
    """What is taken of models with these accuracies."""
    run = SimpleNamespace(
        metrics=("accuracy",),
        models=[SimpleNamespace(history={"accuracy": values}) for values in histories],
        scale=lambda metric: percent,
        method=SimpleNamespace(rounds=rounds),
        federation=SimpleNamespace(channel=SimpleNamespace(ledger=ledger)),
    )
    return MEASURES["bandwidth"].take(run)


def test_rounds_are_measured_in_gigabytes_and_percent():
    taken = traffic([[0.125, 0.5, 0.25]], LEDGER, 3, 100)
    assert taken.measurements[:2] == (
        Measurement("accuracy", 12.5, "round=1", 1, 1),
        Measurement("bandwidth-gb", 35e-9, "round=1"),
    )
    assert taken.measurements[-2:] == (
        Measurement("accuracy", 25.0, "round=3", 1, 1),
        Measurement("bandwidth-gb", 1138e-9, "round=3"),
    )
    assert taken.statistic == "after each of 3 rounds, with the bytes until then"


def test_several_models_are_averaged():
    taken = traffic([[0.5, 0.5], [0.25, 1.0]], [Transfer(0, "up", "logits", 0, 9)])
    assert [m.value for m in taken.measurements if m.metric == "accuracy"] == [0.375, 0.75]
    assert taken.statistic == "after each of 2 epochs, when all bytes had crossed, mean over models"
