"""Federations whose clients hold another set than the target, or tasks of their own."""

import numpy as np
import pytest
import torch

from fedtables.datasets import catalogue
from fedtables.datasets.catalogue import ResolvedData
from fedtables.datasets.partitions import PartitionError
from fedtables.federation.seeds import Seeds
from fedtables.federation.tasks.images import Classification
from fedtables.federation.tasks.pixels import Segmentation
from fedtables.federation.tasks.values import DenseRegression
from fedtables.federation.windows import resize
from fedtables.models.entry import ModelError
from tests.benchmarks.scenarios.image_federations import (
    divide,
    federation_of,
    fedsa_config,
)

# -- private data of another set, and labelled target data at the server --


def build_fedsa(config, device="cpu", name="cifar10", private="imagenet32"):
    data, own = (catalogue.resolve(asked, embedded=True) for asked in (name, private))
    return federation_of(config, data, device=device, private=own)


TARGET = {
    "train": np.repeat(np.arange(10), 50)[np.random.default_rng(0).permutation(500)],
    "test": np.arange(40) % 10,
}


PRIVATE = {"train": np.arange(400) % 20, "test": np.arange(20)}


def divide_fedsa(**changes):
    quiet = {
        "partition.clients": 4,
        "partition.target_limit": 0,
        "partition.public_limit": 0,
        "partition.pool_limit": 0,
    }
    return divide(
        {**fedsa_config(fraction="0.10"), **quiet, **changes}, TARGET, Seeds(), None, PRIVATE, 20
    )


def test_clients_hold_groups_of_the_other_sets_classes():
    division = divide_fedsa()
    assert division.groups == [range(0, 5), range(5, 10), range(10, 15), range(15, 20)]
    assert sorted(np.concatenate(division.clients)) == list(range(400))
    for own, group in zip(division.clients, division.groups, strict=True):
        assert set(PRIVATE["train"][own]) == set(group)


@pytest.mark.parametrize(("share", "per_class"), [(0.01, 1), (0.05, 2), (0.10, 5), (1.0, 50)])
def test_the_server_holds_a_share_of_every_class_and_the_rest_is_public(share, per_class):
    division = divide_fedsa(**{"partition.probe_share": share})
    assert (
        np.bincount(TARGET["train"][division.probe]).tolist() == [per_class] * 10
    )  # round(2.5) = 2
    assert sorted([*division.probe, *division.public]) == list(range(500))
    assert (division.public_split, len(division.validation), len(division.test)) == ("train", 0, 40)


def test_limits_of_target_public_and_private_images_are_told_apart():
    limits = {
        "partition.target_limit": 200,
        "partition.public_limit": 30,
        "partition.pool_limit": 100,
        "partition.test_limit": 7,
    }
    division = divide_fedsa(**limits)
    assert (len(division.public), len(division.test)) == (30, 7)
    assert sum(map(len, division.clients)) == 100
    assert 10 <= len(division.probe) <= 30  # a tenth of each class's share of 200
    assert not set(division.probe) & set(division.public)


def test_a_validation_share_is_taken_off_what_the_server_has_no_labels_of():
    without, held = (divide_fedsa(**{"partition.validation_share": s}) for s in (0.0, 0.2))
    assert len(held.validation) == 90  # 0.2 x (500 - 50)
    assert sorted([*held.validation, *held.public]) == without.public.tolist()
    np.testing.assert_array_equal(held.probe, without.probe)


def test_no_sample_can_be_held_out_where_the_target_has_labels_of_all():
    with pytest.raises(PartitionError, match=r"unlabelled samples, and at .*probe_share=1 there"):
        divide_fedsa(**{"partition.validation_share": 0.1, "partition.probe_share": 1.0})


def test_private_data_of_another_set_are_not_divided_in_another_way():
    with pytest.raises(
        PartitionError, match="not divided by 'niid1'; use class-groups or everyone"
    ):
        divide_fedsa(**{"partition.kind": "niid1"})
    everyone = divide_fedsa(**{"partition.kind": "everyone"})
    assert [len(own) for own in everyone.clients] == [400] * 4
    assert everyone.groups == []


@pytest.fixture(scope="module")
def servers():
    return build_fedsa(
        fedsa_config(fraction="0.10", dataset="cifar10", changes={"partition.clients": 8})
    )


def test_clients_number_their_own_classes_from_zero(servers):
    private = catalogue.load("shapes-100-shifted")["train"]
    assert [client.task.classes for client in servers.clients] == [13, 13, 13, 13, 12, 12, 12, 12]
    start = 0
    for client in servers.clients:
        images, targets = client.run(lambda shard: (shard.images, shard.targets))
        assert targets.min() == 0
        assert targets.max() == client.task.classes - 1
        assert client.label_counts == tuple(
            np.bincount(targets.numpy(), minlength=client.task.classes)
        )
        own = np.flatnonzero(
            (private.labels >= start) & (private.labels < start + client.task.classes)
        )
        shown = resize(torch.from_numpy(private.images[own]), 8)
        official = {
            image.numpy().tobytes(): label
            for image, label in zip(shown, private.labels[own], strict=True)
        }
        assert [official[image.numpy().tobytes()] - start for image in images] == targets.tolist()
        start += client.task.classes
    assert start == 100


def test_the_servers_data_are_the_targets(servers):
    target = catalogue.load("shapes")["train"]
    assert servers.task.classes == 10
    assert servers.normalise.mean == catalogue.source("shapes").mean
    known = {
        image.numpy().tobytes(): int(label)
        for image, label in zip(
            resize(torch.from_numpy(target.images), 8), target.labels, strict=True
        )
    }
    probe = servers.probe()
    assert [known[image.numpy().tobytes()] for image in probe.images] == probe.targets.tolist()
    public = {image.numpy().tobytes() for image in servers.public.images}
    assert public <= set(known)
    assert not public & {image.numpy().tobytes() for image in probe.images}
    assert servers.probe().digest != servers.public.digest


def test_a_planned_federation_knows_the_sizes_of_both_sets():
    data = {
        name: ResolvedData(name, name, "real", "", "not present")
        for name in ("cifar100", "imagenet32")
    }
    config = fedsa_config("table1", "paper", fraction="0.05", dataset="cifar100")
    planned = federation_of(config, data["cifar100"], device="meta", private=data["imagenet32"])
    assert planned.probe().images.shape == (2_500, 3, 32, 32)
    assert planned.probe().images.is_meta
    assert len(planned.public) == 47_500
    assert [client.task.classes for client in planned.clients] == [100] * 10
    assert (
        sum(client.size for client in planned.clients)
        == catalogue.source("imagenet32").sizes["train"]
    )


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_private_data_that_are_the_targets_own_under_another_name_are_refused(device):
    message = (
        r"clients would hold the server's own data: caltech100 and cifar100 are both shapes-100"
        r" here.*--set private\.name"
    )
    with pytest.raises(PartitionError, match=message):
        build_fedsa(fedsa_config(dataset="cifar100"), device, "cifar100", "caltech100")


# -- several tasks in one federation --


def rooms(task="segmentation", **changes):
    """Table 4, of which nothing is loaded."""
    data = ResolvedData("taskonomy", "scenes", "synthetic", "", "not loaded")
    limits = {"partition.pool_limit": 1000, "partition.target_limit": 1000}
    config = fedsa_config("table4", task=task, changes={**limits, **changes})
    return federation_of(config, data, device="meta", private=data)


def test_teachers_have_tasks_of_their_own_and_networks_to_suit():
    federation = rooms()
    assert federation.task == Segmentation(8)
    assert federation.networks.server == "resnet8-narrow+dense"
    assert [client.task for client in federation.clients] == [
        DenseRegression(1),
        DenseRegression(3),
        DenseRegression(1),
        DenseRegression(3),
        DenseRegression(1),
        Classification(6),
    ]
    assert [client.network for client in federation.clients] == ["resnet8-narrow+dense"] * 5 + [
        "resnet8-narrow"
    ]
    assert federation.probe().targets.shape == (len(federation.probe().images), 16, 16)
    shapes = [client.run(lambda shard: shard.targets.shape) for client in federation.clients]
    assert shapes == [
        (1000, 1, 16, 16),
        (1000, 3, 16, 16),
        (1000, 1, 16, 16),
        (1000, 3, 16, 16),
        (1000, 1, 16, 16),
        (1000,),
    ]
    assert [bool(client.label_counts) for client in federation.clients] == [False] * 5 + [True]
    assert (
        len({client.digest for client in federation.clients}) == 6
    )  # the same images with other targets


def test_a_network_that_makes_maps_is_refused_for_classification():
    with pytest.raises(ModelError, match=r"^unet-narrow makes maps, and the task needs scores"):
        rooms("classification", **{"network.server": "unet-narrow"})


def test_tasks_are_given_in_turn_to_more_teachers_than_there_are():
    clients = rooms(**{"partition.clients": 3, "partition.teachers": "class+normal"}).clients
    tasks = [Classification(6), DenseRegression(3), Classification(6)]
    assert [client.task for client in clients] == tasks
