"""From configuration to federation: sizes, roles, and what clients share between tables."""

from __future__ import annotations

import numpy as np
import pytest

from baselines.standalone import Standalone
from benchmarks import registry
from benchmarks.scenario import build_federation, divide, roles
from datasets import catalogue
from datasets.catalogue import ResolvedData
from datasets.partitions import PartitionError
from federation.seeds import Seeds
from federation.stages import StageCache


def config_of(table: str, profile: str = "paper", **column: str):
    paper, found = registry.find_table(f"dlad/{table}")
    keys = {k.replace("_", "-"): v for k, v in column.items()}
    return paper.config(found, found.rows[-1], keys, profile, "paper")


def mnist_labels():
    rng = np.random.default_rng(0)
    return {"train": rng.integers(0, 10, 60_000), "test": np.arange(10_000) % 10}


@pytest.mark.parametrize("distribution", ["iid", "niid1", "niid2", "niid3"])
def test_mnist_is_divided_into_the_papers_sizes(distribution):
    division = divide(config_of("table2", dataset="mnist", distribution=distribution), mnist_labels(), Seeds())
    assert len(division.public) == 48_000
    assert [len(own) for own in division.clients] == [6_000] * 10
    assert not set(division.public) & set(np.concatenate(division.clients))
    assert len(division.test) == 10_000


def test_cinic_uses_its_validation_split_as_public_set():
    labels = {name: np.arange(90_000) % 10 for name in ("train", "valid", "test")}
    division = divide(config_of("table2", dataset="cinic10", distribution="niid1"), labels, Seeds())
    assert division.public_split == "valid"
    assert len(division.public) == 90_000
    assert [len(own) for own in division.clients] == [20_000] * 10


def test_a_client_holds_the_same_samples_however_many_others_there_are():
    labels = {"train": np.arange(50_000) % 10, "test": np.arange(100) % 10}
    few = divide(config_of("table4", clients="5", client_model="resnet", distribution="niid3"), labels, Seeds())
    many = divide(config_of("table4", clients="30", client_model="resnet", distribution="niid3"), labels, Seeds())
    for one, other in zip(few.clients, many.clients, strict=False):
        np.testing.assert_array_equal(one, other)


def test_another_partition_seed_gives_other_samples_and_other_axes_do_not():
    config = config_of("table2", dataset="mnist", distribution="iid")
    first = divide(config, mnist_labels(), Seeds()).clients[0]
    assert np.array_equal(first, divide(config, mnist_labels(), Seeds(weights=1, shuffling=2)).clients[0])
    assert not np.array_equal(first, divide(config, mnist_labels(), Seeds(partition=1)).clients[0])


def test_seven_clients_are_refused_with_what_would_work():
    config = {**config_of("table2", dataset="mnist", distribution="niid1"), "partition.clients": 7}
    with pytest.raises(PartitionError, match="use 5 or 10"):
        divide(config, mnist_labels(), Seeds())


def test_mixed_clients_are_half_and_half_in_order():
    assert roles("resnet", 5) == ["resnet"] * 5
    assert roles("resnet+densenet", 10) == ["resnet"] * 5 + ["densenet"] * 5


def test_a_planned_federation_has_sizes_and_no_images():
    data = ResolvedData("cinic10", "cinic10", "real", "", "not present")
    config = config_of("table2", dataset="cinic10", distribution="niid2")
    federation = build_federation(config, data, Seeds(), StageCache(None), Standalone, device="meta")
    assert len(federation.public) == 90_000
    assert federation.public.images.is_meta
    assert {client.size for client in federation.clients} == {20_000}


def test_images_are_resized_to_the_configured_side():
    config = {**config_of("table2", "smoke", dataset="cifar10", distribution="iid"), "data.image_size": 8}
    data = catalogue.resolve("cifar10", embedded=True)
    federation = build_federation(config, data, Seeds(), StageCache(None), Standalone)
    assert federation.public.images.shape[1:] == (3, 8, 8)
    assert federation.public.images.float().mean() > 10
