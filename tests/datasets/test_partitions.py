"""Partitions by class, the public set and exact counts: all placed, impossible wishes refused."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fedtables.datasets.partitions import (
    CLASS_SETS,
    PartitionError,
    class_set_probabilities,
    deal_by_class,
    draw_by_class,
    exact_counts,
    label_counts,
    one_positive,
    split_public,
)
from fedtables.results.published import published_table
from tests.datasets.shares import assert_a_partition, rng

# -- DLAD --


@pytest.mark.parametrize("distribution", CLASS_SETS)
def test_the_classes_of_every_client_are_those_of_table_1(distribution):
    printed = {}
    for cell in published_table("dlad/table1"):
        [expanded] = [
            part.removeprefix("expanded=")
            for part in cell.note.split("; ")
            if part.startswith("expanded=")
        ]
        printed[cell.row, cell.column] = [int(label) for label in expanded.split()]
    probabilities = class_set_probabilities(distribution, 10)
    for client in range(10):
        assert (
            np.flatnonzero(probabilities[client]).tolist()
            == printed[distribution, f"client=5n+{client % 5 + 1}"]
        )


@pytest.mark.parametrize(
    ("distribution", "probability"),
    [("iid", 1 / 10), ("niid1", 1 / 2), ("niid2", 1 / 6), ("niid3", 1 / 4)],
)
def test_a_client_sees_its_classes_with_equal_probability(distribution, probability):
    probabilities = class_set_probabilities(distribution, 30)
    assert probabilities.shape == (30, 10)
    assert set(probabilities.ravel().tolist()) == {probability} | (
        {0.0} if distribution != "iid" else set()
    )
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(30))


@pytest.mark.parametrize(
    ("clients", "advice"),
    [(7, "use 5 or 10"), (3, "use 5$"), (0, "use 5$"), (-7, "use 5$"), (28, "use 25 or 30")],
)
def test_a_number_of_clients_off_the_fives_is_refused_naming_its_neighbours(clients, advice):
    with pytest.raises(PartitionError, match=advice):
        class_set_probabilities("niid1", clients)


def test_an_unknown_distribution_is_refused_naming_the_known():
    with pytest.raises(PartitionError, match="'niid9'; known: iid, niid1, niid2, niid3"):
        class_set_probabilities("niid9", 5)


def test_a_class_missing_from_the_pool_is_refused_by_name():
    with pytest.raises(PartitionError, match="no sample of class 3"):
        draw_by_class(np.array([0, 1, 2] * 10), class_set_probabilities("iid", 5)[0], 20, rng())


def test_a_class_of_which_nothing_is_asked_may_be_missing():
    own = draw_by_class(np.array([0, 1]), class_set_probabilities("niid1", 5)[0], 6, rng())
    assert np.bincount(own).tolist() == [3, 3]


# -- the public set --


@given(st.integers(2, 500), st.floats(0.01, 0.99), st.integers(0, 99))
def test_public_set_and_pool_are_disjoint_complete_and_in_order(samples, share, seed):
    public, pool = split_public(samples, share, rng(seed))
    assert_a_partition([public, pool], samples)
    assert len(public) == round(share * samples)
    assert (np.diff(public) > 0).all()
    assert (np.diff(pool) > 0).all()


@pytest.mark.parametrize("share", [1, -0.1, 1.5])
def test_a_share_that_leaves_no_pool_or_makes_no_sense_is_refused(share):
    with pytest.raises(PartitionError, match="at least 0 and below 1"):
        split_public(10, share, rng())


# -- exact counts --


def test_the_largest_remainders_get_what_flooring_leaves():
    assert exact_counts(np.array([0.5, 0.3, 0.2]), 11).tolist() == [6, 3, 2]  # ideal 5.5, 3.3, 2.2
    assert exact_counts(np.array([0.15, 0.35, 0.5]), 9).tolist() == [
        1,
        3,
        5,
    ]  # ideal 1.35, 3.15, 4.5


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.integers(0, 100_000))
def test_exact_counts_sum_to_the_size_and_stay_within_one_of_ideal(weights, size):
    assume(sum(weights) > 1e-3)
    probabilities = np.array(weights) / sum(weights)
    counts = exact_counts(probabilities, size)
    assert counts.sum() == size
    assert (np.abs(counts - probabilities * size) < 1 + 1e-6).all()
    assert (counts[probabilities == 0] == 0).all()


# -- counting labels --


def test_label_counts_count_each_class_on_each_client():
    labels = np.array([0, 0, 1, 2])
    assert label_counts(
        labels, [np.array([0, 1, 1]), np.array([], int), np.array([3])], 4
    ).tolist() == [[3, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]]


def test_a_sample_counts_as_one_of_its_positives_each_equally_likely():
    positives = np.array([[True, False, True], [False, True, False], [False, False, False]]).repeat(
        600, axis=0
    )
    drawn = one_positive(positives, np.random.default_rng(0)).reshape(3, 600)
    assert set(drawn[0]) == {0, 2}
    assert 240 < (drawn[0] == 0).sum() < 360  # within five standard deviations of 300
    assert set(drawn[1]) == {1}
    assert set(drawn[2]) == {3}


def test_without_duplicates_no_sample_is_dealt_twice_and_counts_are_exact():
    labels = np.array([0] * 6 + [1] * 3)
    probabilities = np.array([[0.5, 0.5], [1.0, 0.0]])
    first, second = deal_by_class(labels, probabilities, 4, rng())
    assert (labels[first].tolist(), labels[second].tolist()) == ([0, 0, 1, 1], [0] * 4)
    assert len({*first.tolist(), *second.tolist()}) == 8


def test_a_class_with_too_few_samples_to_be_dealt_without_duplicates_is_refused():
    with pytest.raises(PartitionError, match="2 clients need 4 samples of class 1, and the pool h"):
        deal_by_class(np.array([0] * 9 + [1] * 3), np.array([[0.5, 0.5]] * 2), 4, rng())
