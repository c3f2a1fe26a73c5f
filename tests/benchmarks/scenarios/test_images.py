"""Federations of images: sizes, public and validation sets, what clients share between tables."""

from dataclasses import replace

import numpy as np
import pytest

from fedtables.benchmarks.tables.spec import HELD_OUT
from fedtables.datasets import catalogue
from fedtables.datasets.partitions import PartitionError
from fedtables.federation.seeds import Seeds
from fedtables.results.files import DataError
from tests.benchmarks.scenarios.image_federations import (
    build,
    config_of,
    divide,
    federation_of,
    fediod_config,
)


def mnist_labels():
    rng = np.random.default_rng(0)
    return {"train": rng.integers(0, 10, 60_000), "test": np.arange(10_000) % 10}


@pytest.mark.parametrize("distribution", ["iid", "niid1", "niid2", "niid3"])
def test_mnist_is_divided_into_the_papers_sizes(distribution):
    division = divide(
        config_of("table2", dataset="mnist", distribution=distribution), mnist_labels(), Seeds()
    )
    assert len(division.public) == 48_000
    assert [len(own) for own in division.clients] == [6_000] * 10
    assert not set(division.public) & set(np.concatenate(division.clients))
    assert len(division.test) == 10_000


def test_validation_samples_are_neither_public_nor_a_clients_where_one_data_set_serves_all():
    config = config_of("table2", dataset="mnist", distribution="iid")
    division = divide({**config, "partition.validation_share": 0.1}, mnist_labels(), Seeds())
    assert (len(division.public), len(division.validation)) == (48_000, 1_200)
    assert [len(own) for own in division.clients] == [5_400] * 10
    held = set(division.validation)
    assert not held & set(division.public)
    assert not held & set(np.concatenate(division.clients))


def test_cinic_uses_its_validation_split_as_public_set():
    labels = {name: np.arange(90_000) % 10 for name in ("train", "valid", "test")}
    division = divide(config_of("table2", dataset="cinic10", distribution="niid1"), labels, Seeds())
    assert division.public_split == "valid"
    assert len(division.public) == 90_000
    assert [len(own) for own in division.clients] == [20_000] * 10


def test_a_client_holds_the_same_samples_however_many_others_there_are():
    labels = {"train": np.arange(50_000) % 10, "test": np.arange(100) % 10}
    few = divide(
        config_of("table4", clients="5", client_model="resnet", distribution="niid3"),
        labels,
        Seeds(),
    )
    many = divide(
        config_of("table4", clients="30", client_model="resnet", distribution="niid3"),
        labels,
        Seeds(),
    )
    for one, other in zip(few.clients, many.clients, strict=False):
        np.testing.assert_array_equal(one, other)


def test_another_partition_seed_gives_other_samples_and_other_axes_do_not():
    config = config_of("table2", dataset="mnist", distribution="iid")
    first = divide(config, mnist_labels(), Seeds()).clients[0]
    assert np.array_equal(
        first, divide(config, mnist_labels(), Seeds(weights=1, shuffling=2)).clients[0]
    )
    assert not np.array_equal(first, divide(config, mnist_labels(), Seeds(partition=1)).clients[0])


# -- the public set of another data set --


def test_public_images_of_another_data_set_are_all_of_it_beside_what_is_held_out():
    labels, other = (
        {"train": np.arange(100) % 10, "test": np.arange(20) % 10},
        {"train": np.arange(70) % 7, "test": np.arange(9)},
    )
    config = fediod_config("paper", **{"partition.clients": 4, "partition.public_share": 0.8})
    division = divide(config, labels, Seeds(), other)
    assert division.public.tolist() == list(range(70))
    assert len(np.concatenate(division.clients)) == 20  # of 100, without the share of 0.8
    assert len(division.test) == 20


def test_a_split_and_a_limit_of_the_other_data_set_are_its_own():
    labels, other = (
        {"train": np.arange(100) % 10, "test": np.arange(20) % 10},
        {"train": np.arange(70) % 7, "test": np.arange(9)},
    )
    changes = {
        "partition.clients": 4,
        "partition.public_split": "test",
        "partition.public_limit": 5,
    }
    division = divide(fediod_config("paper", **changes), labels, Seeds(), other)
    assert division.public_split == "test"
    assert len(set(division.public)) == 5
    assert set(division.public) <= set(range(9))
    with pytest.raises(
        PartitionError, match="has no split 'valid' to be the public set; it has train, test"
    ):
        divide(
            {**fediod_config("paper"), "partition.public_split": "valid"},
            {**labels, "valid": labels["test"]},
            Seeds(),
            other,
        )


def test_a_federation_takes_its_public_images_from_the_other_data_set():
    federation = build(fediod_config(), other="cifar100")
    assert len(federation.public) == 300
    assert sum(client.size for client in federation.clients) == 600
    assert federation.task.classes == 10
    own, public = catalogue.source("shapes"), catalogue.source("shapes-100")
    assert (
        federation.normalise.mean == own.mean != public.mean
    )  # one normalisation for all: that of the task's data

    everything = build(
        {**fediod_config(), "partition.public_limit": 0}, other="cifar100"
    ).public.images
    assert len(everything) == public.sizes["train"]
    known = {tuple(image.flatten().tolist()) for image in everything}
    assert {tuple(image.flatten().tolist()) for image in federation.public.images} <= known


def test_the_public_sets_identity_is_that_of_the_data_it_comes_from():
    other = catalogue.resolve("cifar100", embedded=True)
    own = catalogue.resolve("cifar10", embedded=True)

    third = catalogue.resolve("cinic10", embedded=True)

    def digest(public):
        config = {**fediod_config(), "partition.public_limit": 10}
        return federation_of(config, own, device="meta", public=public).public.digest

    assert digest(other) == digest(replace(other, asked="by another name", note="x"))
    assert len({digest(other), digest(replace(other, digest="other content")), digest(third)}) == 3


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("asked", ["cifar10", "shapes"])
def test_a_public_set_that_is_the_clients_own_data_is_refused(asked, device):
    message = (
        rf"the clients' own data: {asked} and cifar10 are both shapes here; name another with --set"
        r" public\.name"
    )
    with pytest.raises(PartitionError, match=message):
        build(fediod_config(row="fedkd"), other=asked, device=device)


def test_public_images_with_another_number_of_channels_are_refused():
    with pytest.raises(
        DataError,
        match=("public images of digits have another number of channels than those of shapes"),
    ):
        build(fediod_config(), other="digits")


# -- the server's validation set --


def test_a_validation_share_is_taken_off_the_pool_exactly_and_from_no_client():
    labels = {"train": np.arange(1000) % 10, "test": np.arange(20) % 10}
    changes = {
        "partition.clients": 4,
        "partition.validation_share": 0.13,
        "partition.pool_limit": 700,
    }
    division = divide(fediod_config("paper", **changes), labels, Seeds(), labels)
    assert len(division.validation) == 91  # 0.13 x 700
    assert sum(map(len, division.clients)) == 609
    assert len(set(division.validation) | set(np.concatenate(division.clients))) == 700


# -- plans and augmentation --


def test_what_is_held_out_as_public_is_no_clients_whatever_public_images_a_method_has():
    labels = {"train": np.arange(5_000) % 10, "test": np.arange(50) % 10}
    without, other, own = (
        divide(
            {
                **fediod_config("paper", row=row, **{"partition.public_share": 0.5}),
                "public.name": name,
            },
            labels,
            Seeds(),
            public,
        )
        for row, name, public in (
            ("fediod", "", None),
            ("fedkd", "cifar100", {"train": np.arange(40)}),
            ("fedkd", HELD_OUT, None),
        )
    )
    assert (len(without.public), len(other.public), len(own.public)) == (0, 40, 2_500)
    held_by = [[shard.tolist() for shard in d.clients] for d in (without, other, own)]
    assert held_by[0] == held_by[1] == held_by[2]
    assert not set(own.public) & set(np.concatenate(own.clients))


def test_without_duplicates_dlads_clients_hold_disjoint_samples():
    config = config_of("table2", dataset="mnist", distribution="iid")
    labels = mnist_labels()
    held = np.concatenate(divide(config, labels, Seeds()).clients)
    assert len(np.unique(held)) < len(held)
    apart = {**config, "partition.duplicates": False, "partition.client_share": 0.05}
    dealt = divide(apart, labels, Seeds()).clients
    assert len(dealt) == 10
    assert len(np.unique(np.concatenate(dealt))) == sum(len(part) for part in dealt)


# -- clients of whole writers --

BY_GROUP = {
    "partition.kind": "by-group",
    "partition.clients": 4,
    "partition.public_share": 0.2,
    "partition.validation_share": 0.1,
}


def owned(division, owners):
    """The owners of the public samples, the validation samples and each client's."""
    parts = (division.public, division.validation, *division.clients)
    return [set(owners[part].tolist()) for part in parts]


@pytest.mark.parametrize("seed", range(5))
def test_a_writer_is_at_one_client_or_public_or_for_validation(seed):
    labels = {"train": np.arange(300) % 10, "test": np.arange(20) % 10}
    owners = np.random.default_rng(seed).integers(100, 130, 300)
    config = {**fediod_config("paper"), **BY_GROUP, "public.name": HELD_OUT}
    division = divide(config, labels, Seeds(partition=seed), owners=owners)
    whose = owned(division, owners)
    assert all(whose)
    assert sum(map(len, whose)) == len(np.unique(owners))
    assert len(whose[0]) == round(0.2 * len(np.unique(owners)))
    held = np.concatenate([division.public, division.validation, *division.clients])
    assert np.array_equal(np.sort(held), np.arange(300))


def test_writers_of_a_pool_that_is_limited_stay_apart():
    labels = {"train": np.arange(300) % 10, "test": np.arange(20) % 10}
    owners = np.arange(300) // 10
    config = {**fediod_config("paper"), **BY_GROUP, "partition.pool_limit": 100}
    division = divide(config, labels, Seeds(), owners=owners)
    assert sum(map(len, division.clients)) + len(division.validation) == 100
    assert len(set().union(*owned(division, owners))) == sum(map(len, owned(division, owners)))


def test_by_group_without_groups_is_refused_by_name():
    config = {**fediod_config("smoke"), **BY_GROUP}
    with pytest.raises(PartitionError, match="by-group needs a data set that says whose each"):
        build(config, name="mnist", other="cifar100-grey")


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_clients_of_the_digits_have_whole_forms(device):
    config = {**fediod_config("smoke"), **BY_GROUP, "partition.clients": 8}
    config |= {"partition.pool_limit": 0, "public.name": ""}
    federation = build(config, name="digits-writers", device=device)
    assert sorted(client.size for client in federation.clients)[0] >= 122
    assert len(federation.clients) == 8  # of eleven forms, two are public and one for validation
    with pytest.raises(PartitionError, match="9 clients cannot share 8 groups"):
        build({**config, "partition.clients": 9}, name="digits-writers", device=device)


def test_a_plan_of_clients_by_group_needs_no_files():
    config = {**fediod_config("smoke"), **BY_GROUP, "public.name": "", "partition.pool_limit": 0}
    absent = replace(catalogue.resolve("femnist", embedded=True), used="femnist", digest="")
    federation = federation_of(config, absent, device="meta")
    held = sum(client.size for client in federation.clients)
    assert held == pytest.approx(0.8 * 0.9 * catalogue.source("femnist").sizes["train"], rel=1e-3)
