"""Partitions: exact counts, every sample placed once, impossible wishes refused."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from datasets.partitions import (
    CLASS_SETS,
    PartitionError,
    by_site,
    by_size,
    class_groups,
    class_set_probabilities,
    dirichlet_feddf,
    dirichlet_fedkd,
    draw_by_class,
    draw_share_by_class,
    exact_counts,
    label_counts,
    one_positive,
    split_groups,
    split_public,
)
from datasets.source import DataError
from results.published import published_table


def rng(seed=0):
    return np.random.default_rng(seed)


def balanced(samples, classes=10):
    return np.arange(samples) % classes


def assert_a_partition(parts, samples):
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(samples))


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


def test_a_partition_error_is_a_data_error():
    assert issubclass(PartitionError, DataError)


def shard_counts(distribution, client, pool, size):
    labels = balanced(pool)
    own = draw_by_class(labels, class_set_probabilities(distribution, 10)[client], size, rng())
    return label_counts(labels, [own], 10)[0].tolist()


def test_cifar_niid1_clients_hold_2500_samples_of_each_of_two_classes():
    assert shard_counts("niid1", 1, 10_000, 5000) == [0, 0, 2500, 2500, 0, 0, 0, 0, 0, 0]
    assert shard_counts("niid1", 9, 10_000, 5000) == [0, 0, 0, 0, 0, 0, 0, 0, 2500, 2500]


def test_mnist_niid2_clients_hold_1000_samples_of_each_of_six_classes():
    assert shard_counts("niid2", 3, 12_000, 6000) == [1000] * 5 + [0, 0, 0, 1000, 0]


def test_niid3_clients_hold_a_quarter_of_each_of_four_classes():
    assert shard_counts("niid3", 4, 10_000, 5000) == [0, 0, 0, 1250, 0, 0, 1250, 0, 1250, 1250]


def test_iid_clients_hold_a_tenth_of_every_class():
    assert shard_counts("iid", 0, 10_000, 5000) == [500] * 10


def test_a_client_may_hold_duplicates_when_the_pool_is_too_small():
    labels = balanced(10_000)
    own = draw_by_class(labels, class_set_probabilities("niid1", 5)[0], 5000, rng())
    assert len(own) == 5000
    assert len(np.unique(own)) <= 2000


def test_draws_differ_between_streams_and_repeat_within_one():
    labels, p = balanced(1000), class_set_probabilities("iid", 5)[0]
    assert np.array_equal(
        draw_by_class(labels, p, 100, rng(1)), draw_by_class(labels, p, 100, rng(1))
    )
    assert not np.array_equal(
        draw_by_class(labels, p, 100, rng(1)), draw_by_class(labels, p, 100, rng(2))
    )


def test_a_class_missing_from_the_pool_is_refused_by_name():
    with pytest.raises(PartitionError, match="no sample of class 3"):
        draw_by_class(np.array([0, 1, 2] * 10), class_set_probabilities("iid", 5)[0], 20, rng())


def test_a_class_of_which_nothing_is_asked_may_be_missing():
    own = draw_by_class(np.array([0, 1]), class_set_probabilities("niid1", 5)[0], 6, rng())
    assert np.bincount(own).tolist() == [3, 3]


def test_drawing_no_samples_gives_an_empty_shard():
    assert len(draw_by_class(balanced(100), np.full(10, 0.1), 0, rng())) == 0


# -- the public set --


def test_80_percent_of_mnist_are_48000_public_and_12000_pool_samples():
    public, pool = split_public(60_000, 0.8, rng())
    assert (len(public), len(pool)) == (48_000, 12_000)
    assert_a_partition([public, pool], 60_000)


def test_80_percent_of_cifar_are_40000_public_and_10000_pool_samples():
    public, pool = split_public(50_000, 0.8, rng())
    assert (len(public), len(pool)) == (40_000, 10_000)


@given(st.integers(2, 500), st.floats(0.01, 0.99), st.integers(0, 99))
def test_public_set_and_pool_are_disjoint_complete_and_in_order(samples, share, seed):
    public, pool = split_public(samples, share, rng(seed))
    assert_a_partition([public, pool], samples)
    assert len(public) == round(share * samples)
    assert (np.diff(public) > 0).all()
    assert (np.diff(pool) > 0).all()


def test_the_public_set_is_random():
    assert not np.array_equal(
        split_public(1000, 0.5, rng(1))[0], split_public(1000, 0.5, rng(2))[0]
    )


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


def test_thirds_of_a_whole_number_lose_nothing_to_rounding():
    assert exact_counts(np.full(3, 1 / 3), 6000).tolist() == [2000] * 3
    assert exact_counts(np.full(6, 1 / 6), 6000).tolist() == [1000] * 6


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.integers(0, 100_000))
def test_exact_counts_sum_to_the_size_and_stay_within_one_of_ideal(weights, size):
    assume(sum(weights) > 1e-3)
    probabilities = np.array(weights) / sum(weights)
    counts = exact_counts(probabilities, size)
    assert counts.sum() == size
    assert (np.abs(counts - probabilities * size) < 1 + 1e-6).all()
    assert (counts[probabilities == 0] == 0).all()


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


def test_fedkd_may_leave_a_client_empty():
    parts = dirichlet_fedkd(
        balanced(20, 2), 3, 1.0, rng(), np.array([[0.0, 1.0, 0.0], [0.0, 0.5, 0.5]])
    )
    assert [len(part) for part in parts] == [0, 15, 5]


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


def test_fedkd_sizes_under_seed_0_stay_as_they_are():
    parts = dirichlet_fedkd(balanced(1000), 5, 1.0, rng(0))
    assert [len(part) for part in parts] == [193, 200, 165, 189, 253]


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


def test_a_small_alpha_gives_clients_few_classes_and_a_large_one_all():
    def classes_held(alpha):
        labels = balanced(10_000)
        counts = label_counts(labels, dirichlet_fedkd(labels, 20, alpha, rng()), 10)
        return (counts > 20).sum(axis=1).mean()

    assert classes_held(0.05) < 3
    assert classes_held(100) == 10


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


def test_feddf_shuffles_first():
    [only] = dirichlet_feddf(np.zeros(100, int), 1, 1.0, rng())
    assert only.tolist() != list(range(100))


def test_feddf_refuses_what_no_draw_achieves_with_advice():
    with pytest.raises(PartitionError, match="raise alpha or use fewer clients"):
        dirichlet_feddf(np.zeros(1000, int), 10, 0.001, rng(), tries=5)


# -- FedSA: groups of classes --


def test_a_thousand_classes_among_ten_clients_are_blocks_of_a_hundred():
    labels = rng().permutation(balanced(3000, 1000))
    parts, groups = class_groups(labels, 10, 1000)
    assert groups == [range(start, start + 100) for start in range(0, 1000, 100)]
    assert [len(part) for part in parts] == [300] * 10
    assert np.unique(labels[parts[3]]).tolist() == list(range(300, 400))


def test_a_client_holds_all_samples_of_its_classes_in_file_order():
    labels = np.array([3, 0, 2, 1, 0, 3, 1, 2, 2])
    parts, groups = class_groups(labels, 2)
    assert [part.tolist() for part in parts] == [[1, 3, 4, 6], [0, 2, 5, 7, 8]]
    assert groups == [range(2), range(2, 4)]


def test_where_classes_do_not_divide_the_first_clients_have_one_more():
    assert [len(group) for group in class_groups(balanced(100), 4)[1]] == [3, 3, 2, 2]


def test_the_classes_of_the_data_set_settle_the_groups_even_if_some_have_no_sample():
    parts, groups = class_groups(np.array([0, 1, 2, 5]), 2, 10)
    assert (groups, [part.tolist() for part in parts]) == (
        [range(5), range(5, 10)],
        [[0, 1, 2], [3]],
    )


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


def test_groups_of_classes_among_nobody_or_of_nothing_are_refused():
    with pytest.raises(PartitionError, match="at least one client"):
        class_groups(balanced(100), 0)
    with pytest.raises(PartitionError, match="cannot share 0 samples"):
        class_groups(np.empty(0, int), 1)


# -- FedSA: the probe set --


@pytest.mark.parametrize("consecutive", [False, True])
@pytest.mark.parametrize(("share", "each"), [(0.01, 50), (0.05, 250), (0.1, 500), (1, 5000)])
def test_the_papers_shares_of_cifar10_are_exact_in_every_class(share, each, consecutive):
    labels = rng(5).permutation(balanced(50_000))
    drawn, rest = draw_share_by_class(labels, share, rng(), consecutive=consecutive)
    assert np.bincount(labels[drawn], minlength=10).tolist() == [each] * 10
    assert len(rest) == 50_000 - 10 * each


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


@pytest.mark.parametrize("consecutive", [False, True])
def test_the_probe_set_is_random_and_repeats_under_its_seed(consecutive):
    labels = balanced(1000)
    first, same, other = (
        draw_share_by_class(labels, 0.05, rng(seed), consecutive=consecutive)[0]
        for seed in (1, 1, 2)
    )
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)


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


# -- both --


@pytest.mark.parametrize("split", [dirichlet_fedkd, dirichlet_feddf])
def test_more_clients_than_samples_are_refused(split):
    with pytest.raises(
        PartitionError, match="11 clients cannot share 10 samples; use at most 10 clients"
    ):
        split(balanced(10), 11, 1.0, rng())


@pytest.mark.parametrize("split", [dirichlet_fedkd, dirichlet_feddf])
def test_a_partition_among_nobody_is_refused(split):
    with pytest.raises(PartitionError, match="at least one client"):
        split(balanced(10), 0, 1.0, rng())


@pytest.mark.parametrize("split", [dirichlet_fedkd, dirichlet_feddf])
def test_the_same_seed_gives_the_same_partition_and_another_seed_another(split):
    first, same, other = (split(balanced(500), 5, 1.0, rng(seed)) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, same, strict=True))
    assert any(not np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_label_counts_count_each_class_on_each_client():
    labels = np.array([0, 0, 1, 2])
    assert label_counts(
        labels, [np.array([0, 1, 1]), np.array([], int), np.array([3])], 4
    ).tolist() == [
        [3, 0, 0, 0],
        [0, 0, 0, 0],
        [0, 0, 1, 0],
    ]


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


def test_a_sample_counts_as_one_of_its_positives_each_equally_likely():
    positives = np.array([[True, False, True], [False, True, False], [False, False, False]]).repeat(
        600, axis=0
    )
    drawn = one_positive(positives, np.random.default_rng(0)).reshape(3, 600)
    assert set(drawn[0]) == {0, 2}
    assert 240 < (drawn[0] == 0).sum() < 360  # within five standard deviations of 300
    assert set(drawn[1]) == {1}
    assert set(drawn[2]) == {3}


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


def test_subjects_are_cut_into_chunks_of_ascending_tumours():
    groups = np.array([7, 7, 8, 8, 9, 10, 10])
    sizes = np.array([3, 4, 1, 1, 30, 2, 3])  # 7, 2, 30 and 5 of subjects 7, 8, 9 and 10
    assert [part.tolist() for part in by_size(groups, sizes, 2)] == [[2, 3, 5, 6], [0, 1, 4]]
    assert [part.tolist() for part in by_size(groups, sizes, 3)] == [[2, 3, 5, 6], [0, 1], [4]]


def test_170_subjects_are_ten_clients_of_17():
    sizes = rng().permutation(170)
    parts = by_size(np.arange(170), sizes, 10)
    assert [sorted(sizes[part]) for part in parts] == np.arange(170).reshape(10, 17).tolist()


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


def test_fewer_clients_share_the_sites_as_evenly_as_they_come():
    sites = np.array([0] * 45 + [1] * 34 + [2] * 16 + [3] * 14 + [4])
    parts = by_site(np.arange(110), sites, 3)
    assert [set(sites[part].tolist()) for part in parts] == [{0}, {1}, {2, 3, 4}]


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


def test_more_clients_than_groups_are_refused():
    groups = np.array([1, 1, 2])
    for split in (by_size, by_site):
        with pytest.raises(PartitionError, match="3 clients cannot share 2 groups"):
            split(groups, np.array([0, 0, 1]), 3)
