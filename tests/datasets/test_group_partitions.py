"""Partitions that keep groups together, of classes, patients or sites, and FedSA's probe set."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fedtables.datasets.partitions import (
    PartitionError,
    by_group,
    by_site,
    by_size,
    class_groups,
    draw_share_by_class,
    split_groups,
)
from tests.datasets.shares import assert_a_partition, balanced, rng

# -- FedSA: groups of classes --


def test_a_client_holds_all_samples_of_its_classes_in_file_order():
    labels = np.array([3, 0, 2, 1, 0, 3, 1, 2, 2])
    parts, groups = class_groups(labels, 2)
    assert [part.tolist() for part in parts] == [[1, 3, 4, 6], [0, 2, 5, 7, 8]]
    assert groups == [range(2), range(2, 4)]


@given(st.integers(1, 300), st.integers(1, 30), st.integers(1, 30), st.integers(0, 99))
def test_groups_of_classes_are_disjoint_complete_and_consecutive(samples, classes, clients, seed):
    labels = rng(seed).integers(classes, size=samples)
    assume(samples >= clients <= classes)
    try:
        parts, groups = class_groups(labels, clients, classes)
    except PartitionError:
        blocks = np.array_split(np.arange(classes), clients)
        assert any(not np.isin(labels, block).any() for block in blocks)
        return
    assert_a_partition(parts, samples)
    assert [label for group in groups for label in group] == list(range(classes))
    assert max(map(len, groups)) - min(map(len, groups)) <= 1
    for part, group in zip(parts, groups, strict=True):
        assert set(labels[part]) <= set(group)
        assert (np.diff(part) > 0).all()


def test_more_clients_than_classes_are_refused():
    with pytest.raises(
        PartitionError,
        match="11 clients cannot hold disjoint groups of 10 classes; use at most 10 clients",
    ):
        class_groups(balanced(100), 11)


def test_a_client_without_samples_is_refused_naming_its_classes():
    with pytest.raises(
        PartitionError, match="client 1 would hold nothing: no sample has a label from 4 to 6"
    ):
        class_groups(np.array([0, 1, 2, 3, 7, 8, 9]), 3, 10)


@pytest.mark.parametrize("labels", [[0, 1, 10], [-1, 0, 1]])
def test_labels_that_are_no_classes_are_refused(labels):
    with pytest.raises(
        PartitionError, match=f"labels {min(labels)} to {max(labels)} are not all among 10 classes"
    ):
        class_groups(np.array(labels), 2, 10)


# -- FedSA: the probe set --


def test_a_share_is_rounded_in_each_class_and_never_to_nothing():
    labels = np.repeat([0, 1, 3], [100, 26, 2])  # class 2 has no sample
    drawn, rest = draw_share_by_class(labels, 0.1, rng())
    assert np.bincount(labels[drawn]).tolist() == [10, 3, 0, 1]  # 10, 2.6, none, 0.2
    assert np.bincount(labels[rest]).tolist() == [90, 23, 0, 1]


@pytest.mark.parametrize("consecutive", [False, True])
@given(
    st.integers(0, 400), st.integers(1, 20), st.floats(0, 1, exclude_min=True), st.integers(0, 99)
)
def test_probe_set_and_rest_are_disjoint_complete_and_in_order(
    consecutive, samples, classes, share, seed
):
    labels = rng(seed).integers(classes, size=samples)
    drawn, rest = draw_share_by_class(labels, share, rng(seed), consecutive=consecutive)
    assert_a_partition([drawn, rest], samples)
    assert (np.diff(drawn) > 0).all()
    assert (np.diff(rest) > 0).all()
    for label in np.unique(labels):
        own = int((labels == label).sum())
        assert (labels[drawn] == label).sum() == max(1, round(share * own))


def test_as_released_the_probe_set_is_what_comes_next_of_each_class_from_one_place():
    labels = rng(3).integers(10, size=20_000)
    start = int(np.random.default_rng(8).integers(3000))
    expected, counts = (
        [],
        [max(1, round(0.01 * int((labels == label).sum()))) for label in range(10)],
    )
    for index in range(start, len(labels)):  # as the script walks through the file
        if counts[labels[index]] > 0:
            counts[labels[index]] -= 1
            expected.append(index)
    assert draw_share_by_class(labels, 0.01, rng(8), consecutive=True)[0].tolist() == expected


def test_a_consecutive_run_ends_at_the_last_sample_of_its_class():
    labels = np.array([1] + [0] * 2999)  # class 1 lies before almost every place
    for seed in range(20):
        drawn, _ = draw_share_by_class(labels, 0.5, rng(seed), consecutive=True)
        zeros = drawn[drawn > 0]
        assert 0 in drawn
        assert zeros.tolist() == list(range(zeros[0], zeros[0] + 1500))


@pytest.mark.parametrize("share", [0, -0.1, 1.01, math.nan])
def test_a_share_of_each_class_that_makes_no_sense_is_refused(share):
    with pytest.raises(PartitionError, match="above 0 and at most 1"):
        draw_share_by_class(balanced(10), share, rng())


# -- by what groups are, such as subjects of a tumour's size and of a site --


@st.composite
def subjects(draw, clients):
    """Groups, sizes and sites of samples, with at least as many groups as clients."""
    count = draw(st.integers(clients, 12))
    groups = [*draw(st.lists(st.integers(0, count - 1), max_size=30)), *range(count)]
    of_group = draw(st.lists(st.integers(0, 4), min_size=count, max_size=count))
    sizes = draw(st.lists(st.integers(0, 50), min_size=len(groups), max_size=len(groups)))
    order = draw(st.permutations(range(len(groups))))
    names = np.array(groups)[list(order)]
    return names + 100, np.array(sizes), np.array(of_group)[names]


def assert_groups_stay_together(parts, groups):
    assert_a_partition(parts, len(groups))
    owners = [set(groups[part].tolist()) for part in parts]
    assert sum(map(len, owners)) == len(set(groups.tolist()))
    assert all(owners)
    assert all((np.diff(part) > 0).all() for part in parts)


@given(
    st.lists(st.integers(0, 8), min_size=1, max_size=40),
    st.floats(0, 0.99),
    st.integers(0, 2**32 - 1),
)
def test_a_split_by_groups_keeps_every_group_together_and_every_sample_once(groups, share, seed):
    patients = np.array(groups)
    held, rest = split_groups(patients, share, np.random.default_rng(seed))
    assert sorted([*held, *rest]) == list(range(len(patients)))
    assert set(patients[held]).isdisjoint(patients[rest])
    assert len(set(patients[held])) == round(share * len(set(groups)))


def test_subjects_are_cut_into_chunks_of_ascending_tumours():
    groups = np.array([7, 7, 8, 8, 9, 10, 10])
    sizes = np.array([3, 4, 1, 1, 30, 2, 3])  # 7, 2, 30 and 5 of subjects 7, 8, 9 and 10
    assert [part.tolist() for part in by_size(groups, sizes, 2)] == [[2, 3, 5, 6], [0, 1, 4]]
    assert [part.tolist() for part in by_size(groups, sizes, 3)] == [[2, 3, 5, 6], [0, 1], [4]]


@given(st.data(), st.integers(1, 6))
def test_clients_by_size_have_whole_groups_in_ascending_order(data, clients):
    groups, sizes, _ = data.draw(subjects(clients))
    parts = by_size(groups, sizes, clients)
    assert_groups_stay_together(parts, groups)
    totals = {group: sizes[groups == group].sum() for group in groups.tolist()}
    of_client = [[totals[group] for group in groups[part].tolist()] for part in parts]
    assert all(max(a) <= min(b) for a, b in itertools.pairwise(of_client))
    counts = [len(set(groups[part].tolist())) for part in parts]
    assert max(counts) - min(counts) <= 1


def test_as_many_clients_as_sites_have_one_each():
    groups, sites = np.array([1, 2, 2, 3, 4]), np.array([5, 0, 0, 5, 3])
    assert [part.tolist() for part in by_site(groups, sites, 3)] == [[1, 2], [4], [0, 3]]


def test_more_clients_divide_the_largest_site():
    sites = np.array([0] * 6 + [1] * 2)
    parts = by_site(np.arange(8), sites, 4)
    assert [part.tolist() for part in parts] == [[0, 1], [2, 3], [4, 5], [6, 7]]


@given(st.data(), st.integers(1, 6))
def test_clients_by_site_have_whole_groups_of_whole_sites_or_of_one(data, clients):
    groups, _, sites = data.draw(subjects(clients))
    parts = by_site(groups, sites, clients)
    assert len(parts) == clients
    assert_groups_stay_together(parts, groups)
    if clients >= len(set(sites.tolist())):
        assert all(len(set(sites[part].tolist())) == 1 for part in parts)
    else:
        held = [set(sites[part].tolist()) for part in parts]
        assert sum(map(len, held)) == len(set(sites.tolist()))


def test_a_group_of_two_sites_is_refused():
    with pytest.raises(PartitionError, match="group 8 has samples of two sites"):
        by_site(np.array([7, 8, 8]), np.array([0, 1, 0]), 2)


def test_groups_are_dealt_at_random_and_as_evenly_as_they_can():
    groups = np.repeat(np.arange(100, 107), [5, 1, 1, 3, 2, 2, 9])
    first, second = by_group(groups, 3, rng(1)), by_group(groups, 3, rng(2))
    assert [len(set(groups[part].tolist())) for part in first] == [3, 2, 2]
    assert not all(map(np.array_equal, first, second))
    assert all(map(np.array_equal, first, by_group(groups, 3, rng(1))))


@given(st.data(), st.integers(1, 6), st.integers(0, 99))
def test_clients_by_group_have_whole_groups_as_many_as_the_others(data, clients, seed):
    groups, _, _ = data.draw(subjects(clients))
    parts = by_group(groups, clients, rng(seed))
    assert len(parts) == clients
    assert_groups_stay_together(parts, groups)
    counts = [len(set(groups[part].tolist())) for part in parts]
    assert max(counts) - min(counts) <= 1


def test_more_clients_than_groups_are_refused():
    groups = np.array([1, 1, 2])
    with pytest.raises(PartitionError, match="3 clients cannot share 2 groups"):
        by_group(groups, 3, rng())
    for split in (by_size, by_site):
        with pytest.raises(PartitionError, match="3 clients cannot share 2 groups"):
            split(groups, np.array([0, 0, 1]), 3)
