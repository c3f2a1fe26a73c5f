"""Dirichlet partitions of FedKD, FedIOD and FedDF: every sample placed once, each paper's way."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fedtables.datasets.partitions import PartitionError, dirichlet_feddf, dirichlet_fedkd
from tests.datasets.shares import assert_a_partition, balanced, rng

# -- FedKD and FedIOD --


def test_fedkd_cuts_each_class_in_file_order_by_floors_and_gives_the_rest_to_the_last():
    labels = np.array(
        [1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0]
    )  # class 0 at 1 2 4 6 7 9 10, class 1 at 0 3 5 8
    proportions = np.array([[0.4, 0.4, 0.2], [0.2, 0.5, 0.3]])
    parts = dirichlet_fedkd(labels, 3, 1.0, rng(), proportions)
    # Class 0: floor(2.8) = 2, floor(2.8) = 2, rest 3; class 1: floor(0.8) = 0, floor(2.0) = 2, rest
    # 2.
    assert [part.tolist() for part in parts] == [[1, 2], [4, 6, 0, 3], [7, 9, 10, 5, 8]]


def test_fedkd_floors_each_slice_and_not_the_running_sum():
    parts = dirichlet_fedkd(np.zeros(10, int), 4, 1.0, rng(), np.array([[0.25, 0.25, 0.25, 0.25]]))
    assert [len(part) for part in parts] == [2, 2, 2, 4]  # running sums would give 2, 3, 2, 3


def test_fedkd_reads_the_proportions_of_a_class_by_its_label():
    labels = np.array([0, 0, 2, 2])  # class 1 has no sample
    parts = dirichlet_fedkd(labels, 2, 1.0, rng(), np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]))
    assert [part.tolist() for part in parts] == [[0, 1], [2, 3]]


def test_fedkd_draws_one_dirichlet_vector_per_class_in_label_order():
    labels, clients, alpha = balanced(1000), 5, 0.3
    draws = np.random.default_rng(42)
    expected = [0] * clients
    for _ in range(10):
        p = draws.dirichlet([alpha] * clients)
        sizes = [math.floor(p[k] * 100) for k in range(clients - 1)]
        for client, size in enumerate([*sizes, 100 - sum(sizes)]):
            expected[client] += size
    assert [len(part) for part in dirichlet_fedkd(labels, clients, alpha, rng(42))] == expected


@settings(deadline=None)
@given(
    st.integers(1, 300),
    st.integers(1, 20),
    st.floats(0.01, 100),
    st.integers(1, 12),
    st.integers(0, 99),
)
def test_fedkd_places_every_sample_exactly_once(samples, clients, alpha, classes, seed):
    assume(samples >= clients)
    labels = rng(seed).integers(classes, size=samples)
    parts = dirichlet_fedkd(labels, clients, alpha, rng(seed))
    assert len(parts) == clients
    assert_a_partition(parts, samples)


# -- FedDF --


@settings(deadline=None, max_examples=50)
@given(
    st.integers(20, 400),
    st.integers(1, 25),
    st.floats(0.3, 100),
    st.integers(1, 10),
    st.integers(0, 99),
    st.booleans(),
)
def test_feddf_places_every_sample_exactly_once(samples, clients, alpha, classes, seed, released):
    assume(samples >= clients)
    labels = rng(seed).integers(classes, size=samples)
    try:
        parts = dirichlet_feddf(labels, clients, alpha, rng(seed), released=released, tries=100)
    except PartitionError:
        assume(False)
    assert len(parts) == clients
    assert_a_partition(parts, samples)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 10.0])
def test_feddf_gives_every_client_at_least_half_the_average_of_its_group(alpha):
    sizes = [len(part) for part in dirichlet_feddf(balanced(5000), 20, alpha, rng())]
    assert min(sizes) >= 125
    assert sum(sizes[:10]) == sum(sizes[10:]) == 2500


def test_feddf_deals_to_groups_of_ten_in_proportion_to_their_clients():
    sizes = [len(part) for part in dirichlet_feddf(balanced(2500), 25, 10.0, rng())]
    assert [sum(sizes[:10]), sum(sizes[10:20]), sum(sizes[20:])] == [1000, 1000, 500]


def test_feddf_as_released_gives_20_cifar_clients_2500_samples_each():
    parts = dirichlet_feddf(balanced(50_000), 20, 1.0, rng(), released=True)
    assert {len(part) for part in parts} == {2500}
    assert_a_partition(parts, 50_000)


def test_feddf_refuses_what_no_draw_achieves_with_advice():
    with pytest.raises(PartitionError, match="raise alpha or use fewer clients"):
        dirichlet_feddf(np.zeros(1000, int), 10, 0.001, rng(), tries=5)


# -- both --


@pytest.mark.parametrize("split", [dirichlet_fedkd, dirichlet_feddf])
def test_more_clients_than_samples_are_refused(split):
    with pytest.raises(
        PartitionError, match="11 clients cannot share 10 samples; use at most 10 clients"
    ):
        split(balanced(10), 11, 1.0, rng())


@pytest.mark.parametrize("split", [dirichlet_fedkd, dirichlet_feddf])
def test_the_same_seed_gives_the_same_partition_and_another_seed_another(split):
    first, same, other = (split(balanced(500), 5, 1.0, rng(seed)) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, same, strict=True))
    assert any(not np.array_equal(a, b) for a, b in zip(first, other, strict=True))
