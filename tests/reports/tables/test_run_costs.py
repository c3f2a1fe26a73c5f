"""What runs cost, and how accurate they are at equal cost, by hand."""

import math

import numpy as np
import pytest

from fedtables.reports.tables.run_costs import at_cost, reached, seconds_by_epoch
from fedtables.results.arrays import pack
from tests.reports.tables.test_standings import record


def run(seed, accuracy, megabytes, **more):
    sent = np.array(megabytes) * 1e6
    return record(seed=seed, arrays=pack({"accuracy": np.array(accuracy), "bytes": sent}), **more)


def costs_of(*runs):
    """Of the one row and column, by metric."""
    return at_cost(runs).loc["plain", record().column]


def test_accuracy_at_cost_is_the_last_within_it():
    history, spent = np.array([0.1, 0.5, 0.7]), np.array([1.0, 2.0, 4.0])
    assert reached(history, spent, 2) == 0.5
    assert reached(history, spent, 100) == 0.7
    assert math.isnan(reached(history, spent, 0.5))


@pytest.mark.parametrize(
    ("sent", "expected"),
    [([8, 8], [6 + 1, 6 + 2]), ([4, 8], [4, 8]), ([0, 0], [4, 8])],
    ids=["one-shot: clients first", "in rounds", "nothing sent"],
)
def test_time_is_even_over_rounds_and_behind_the_clients_in_one_shot_methods(sent, expected):
    arrays = pack({"accuracy": np.zeros(2), "bytes": np.array(sent)})
    made = record(arrays=arrays, fit_seconds={"local": 6.0, "server": 2.0})
    assert seconds_by_epoch(made, 2).tolist() == expected


def test_accuracy_at_equal_bytes_has_a_deviation_and_a_number_of_seeds():
    found = costs_of(run(0, [0.2, 0.4], [0.5, 2]), run(1, [0.3, 0.6], [0.5, 2]))
    mean, std, n, short = found.loc["accuracy-at-1-mb"]
    assert (mean, std) == (pytest.approx(25), pytest.approx(5 * math.sqrt(2)))
    assert (n, short) == (2, False)
    assert found.loc["accuracy-at-10-mb", "mean"] == pytest.approx(50)
    assert math.isnan(costs_of(run(0, [0.2], [0.5])).loc["accuracy-at-1-mb", "std"])


def test_it_is_cut_short_where_a_run_was_that_ended_within_the_limit():
    found = costs_of(run(0, [0.2, 0.4], [0.5, 2], settled={"accuracy": False}))
    short = {limit: found.loc[f"accuracy-at-{limit}-mb", "short"] for limit in (1, 10, 100)}
    assert short == {1: False, 10: True, 100: True}
    settled = costs_of(run(0, [0.2, 0.4], [0.5, 2], settled={"accuracy": True}))
    assert not settled.loc["accuracy-at-10-mb", "short"]
