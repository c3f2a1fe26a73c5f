"""From a run's history to its number, and in words how it came about."""

from __future__ import annotations

import math

import pytest

from benchmarks.measures.final import epochs_of, statistic_name, statistic_of
from benchmarks.scenarios.configuration import EvaluationSettings
from benchmarks.tables.measure import count_in

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
