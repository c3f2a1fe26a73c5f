"""Slices of several sites: who holds what, what is measured of k-space, and what is tested."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedtables.benchmarks.scenarios import slices
from fedtables.benchmarks.scenarios.configuration import Configuration
from fedtables.benchmarks.scenarios.scenario import DataSets
from fedtables.benchmarks.scenarios.slices import SliceSettings, SliceSite
from fedtables.datasets import catalogue, decoded
from fedtables.datasets.partitions import PartitionError
from fedtables.datasets.source import DataError
from fedtables.federation.seeds import Seeds
from fedtables.federation.tasks.values import Reconstruction, zero_filled
from fedtables.federation.training.inputs import unit_range

HEADS, SLICES = {"train": 8, "test": 4}, 6
"""Of each generated site, and of each head."""
CONFIG = {
    "data.name": "phantom-brains-b-t1+phantom-brains-f-t1+phantom-brains-i-t1",
    "data.task": "reconstruction",
    "data.image_size": 32,
    "slices.called": "phantom-brains-b-t1=b+phantom-brains-f-t1=f+phantom-brains-i-t1=i",
    "partition.kind": "by-site",
    "partition.clients": 3,
    "network.client": "unet-8-in",
    "network.server": "unet-8-in",
    "local.epochs": 1,
    "local.batch_size": 4,
    "server.epochs": 1,
    "server.batch_size": 4,
}
TWO = {"data.train": "b,f", "partition.clients": 2}


def data_of(configuration, public=None):
    first, *others = map(catalogue.resolve, configuration.data.name.split("+"))
    return DataSets(first, public and catalogue.resolve(public), others=tuple(others))


def made(device="cpu", seeds=None, public=None, **changes):
    """The scenario's parts of a configuration."""
    configuration = Configuration.parse(CONFIG | changes)
    return slices.parts(configuration, data_of(configuration, public), seeds or Seeds(), device)


def measured_on(test):
    """The one test set of a cell that is measured on these sites."""
    configuration = Configuration.parse(CONFIG | {"slices.test": test})
    data = data_of(configuration)
    return slices.test_sets(configuration, (data.target, *data.others), "cpu")


def held(client):
    return client.shard.images, client.shard.targets


def pictures(images):
    return {bytes(image.numpy()) for image in images}


# -- clients --


def test_a_data_set_is_a_client_whose_slices_are_undersampled():
    parts = made()
    assert [len(client.shard) for client in parts.clients] == [HEADS["train"] * SLICES] * 3
    for name, client in zip("bfi", parts.clients, strict=True):
        images, targets = held(client)
        stored = torch.from_numpy(catalogue.load(f"phantom-brains-{name}-t1")["train"].images)
        assert images.shape == targets.shape == (48, 1, 32, 32)
        torch.testing.assert_close(targets, unit_range(stored))
        assert (images - targets).abs().mean() > 0.01
    assert parts.task == Reconstruction(1, 4.0, 0.08)
    assert (parts.image_shape, parts.validation) == ((1, 32, 32), None)
    assert len(parts.public) == 0


def test_large_sets_of_slices_are_the_same_from_the_cache(monkeypatch):
    memory = made()
    monkeypatch.setattr(decoded, "LARGE", 1)
    for _ in range(2):
        disk = made()
        for one, other in zip(memory.clients, disk.clients, strict=True):
            assert all(map(torch.equal, held(one), held(other)))
    planned = made("meta").held().values()
    marked = [tensor for tensor in planned if getattr(tensor, "mapped", False)]
    assert len(marked) == 2 * (3 + 3)  # images and targets of three clients and three test sets


def test_some_sites_train_and_hold_what_they_hold_beside_the_others():
    every, two = made(), made(**TWO)
    assert [client.digest for client in two.clients] == [c.digest for c in every.clients[:2]]
    for one, same in zip(two.clients, every.clients, strict=False):
        assert torch.equal(held(one)[0], held(same)[0])
    turned = made(**TWO | {"data.train": "f,b"})
    assert [c.digest for c in turned.clients] == [c.digest for c in two.clients[::-1]]
    assert two.test.digest == every.test.digest  # so that cells share their fits
    assert two.further_tests.keys() == every.further_tests.keys()


def test_subjects_of_the_validation_set_are_nobodys():
    parts = made(**{"partition.validation_share": 0.25})
    assert [len(client.shard) for client in parts.clients] == [6 * SLICES] * 3
    assert len(parts.validation.images) == 3 * 2 * SLICES
    assert parts.validation.groups.bincount().tolist() == [SLICES] * 6
    seen = set().union(*(pictures(held(client)[1]) for client in parts.clients))
    assert not seen & pictures(parts.validation.targets)
    whole = set().union(*(pictures(held(client)[1]) for client in made().clients))
    assert seen | pictures(parts.validation.targets) == whole


def test_public_slices_are_undersampled_ones_of_another_set():
    public = made(public="phantom-brains-public-t1", **{"partition.public_limit": 7}).public
    stored = torch.from_numpy(catalogue.load("phantom-brains-public-t1")["train"].images[:7])
    assert public.images.shape == (7, 1, 32, 32)
    apart = (public.images - unit_range(stored)).abs().mean(dim=(1, 2, 3))
    assert (apart > 0.01).all()
    assert len(made(public="phantom-brains-public-t1").public) == HEADS["train"] * SLICES


# -- tests --


def test_test_subjects_of_several_sites_are_pooled_and_none_is_of_two():
    (name, both), *more = measured_on("b,f").items()
    assert (name, more) == ("b,f", [])
    alone = [measured_on(site)[site] for site in "bf"]
    assert torch.equal(both.images, torch.cat([one.images for one in alone]))
    assert torch.equal(both.targets, torch.cat([one.targets for one in alone]))
    assert both.groups.tolist() == [head for head in range(8) for _ in range(SLICES)]
    assert [one.groups.unique().tolist() for one in alone] == [[0, 1, 2, 3]] * 2
    assert len({both.digest, *(one.digest for one in alone)}) == 3
    assert made(**TWO).test.digest == alone[0].digest


# -- columns --


def site(**how):
    return SliceSite(catalogue.resolve("phantom-brains-b-t1"), 32, SliceSettings(**how))


@pytest.mark.parametrize(("limit", "subjects"), [(0, 4), (24, 4), (13, 2), (1, 1)])
def test_a_limit_of_test_slices_keeps_whole_subjects_the_same_for_every_seed(limit, subjects):
    some, others = (
        made(seeds=Seeds(partition=s), **{"partition.test_limit": limit}) for s in (0, 1)
    )
    assert some.test.groups.bincount().tolist() == [SLICES] * subjects
    assert [len(test.images) for test in some.further_tests.values()] == [subjects * SLICES] * 2
    assert pictures(some.test.images) <= pictures(made().test.images)
    assert torch.equal(some.test.images, others.test.images)


def test_all_slices_of_a_test_subject_have_the_same_columns_and_each_training_slice_its_own():
    columns = {s: site().columns(s, np.arange(n * SLICES)) for s, n in HEADS.items()}
    assert columns["test"].shape == (24, 1, 1, 32)
    assert columns["test"].dtype == torch.bool
    by_head = columns["test"].view(HEADS["test"], SLICES, 32)
    assert (by_head == by_head[:, :1]).all()
    assert len(by_head[:, 0].unique(dim=0)) == HEADS["test"]
    assert len(columns["train"].unique(dim=0)) == HEADS["train"] * SLICES
    low = (32 - 3 + 1) // 2  # 0.08 x 32 are three columns in the middle
    assert columns["train"][..., low : low + 3].all()
    some = np.array([40, 3])
    assert torch.equal(site().columns("train", some), columns["train"][some])


def test_slices_are_zero_filled_by_their_own_columns():
    some = np.array([5, 20, 40])
    images, truth = site().pairs("train", some, "cpu")
    columns = site().columns("train", some)
    torch.testing.assert_close(images, zero_filled(truth, columns))
    everything, same = site(acceleration=1.0).pairs("train", some, "cpu")
    torch.testing.assert_close(everything, same)


def test_a_clamp_keeps_slices_and_their_truth_within_deviations_of_what_is_seen():
    indices = np.arange(3)
    seen, truths = site().pairs("train", indices, "cpu")
    kept, kept_truths = site(clamp=1.0).pairs("train", indices, "cpu")
    std, mean = torch.std_mean(seen, dim=(2, 3), keepdim=True)
    torch.testing.assert_close(kept, seen.clamp(mean - std, mean + std))
    torch.testing.assert_close(kept_truths, truths.clamp(mean - std, mean + std))
    assert kept_truths.max() < truths.max()
    assert torch.equal(site(clamp=1.0).pairs("train", indices, "cpu")[0], kept)
    assert site(clamp=1.0).identity("train", indices) != site().identity("train", indices)


@pytest.mark.parametrize("axis", ["partition", "weights", "sampling", "shuffling"])
def test_no_seed_of_a_run_moves_the_columns(axis):
    first, second = made(**TWO), made(seeds=Seeds(**{axis: 1}), **TWO)
    for one, same in zip(first.clients, second.clients, strict=True):
        assert torch.equal(held(one)[0], held(same)[0])
    assert torch.equal(first.test.images, second.test.images)


# -- plans --


def test_a_plan_knows_as_many_slices_of_the_same_shapes():
    changes = {"partition.validation_share": 0.25, "public": "phantom-brains-public-t1"}
    real, planned = made(**changes), made(device="meta", **changes)
    for one, same in zip(real.clients, planned.clients, strict=True):
        for a, b in zip(held(one), held(same), strict=True):
            assert (a.shape, a.dtype, b.is_meta) == (b.shape, b.dtype, True)
    for name in ("test", "validation", "public"):
        a, b = getattr(real, name).images, getattr(planned, name).images
        assert (a.shape, a.dtype, b.is_meta) == (b.shape, b.dtype, True)


def test_a_plan_without_the_files_has_the_official_sizes():
    names = ("brats2020-t1", "ixi-t1")
    absent = [
        replace(catalogue.resolve("phantom-brains-b-t1"), asked=name, used=name, digest="")
        for name in names
    ]
    called = {"slices.called": "ixi-t1=i", "partition.clients": 2, "data.name": "+".join(names)}
    configuration = Configuration.parse(CONFIG | called)
    parts = slices.parts(configuration, DataSets(absent[0], others=(absent[1],)), Seeds(), "meta")
    sizes = [catalogue.source(name).sizes for name in names]
    assert [len(client.shard) for client in parts.clients] == [size["train"] for size in sizes]
    assert len(parts.test.images) == sizes[0]["test"]
    assert parts.test.images.is_meta


# -- refusals --


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"partition.kind": "iid"},
            PartitionError,
            "by-site, here among 3 clients, not iid among 3; set partition.kind and",
        ),
        (
            {"data.train": "b,f"},
            PartitionError,
            "here among 2 clients, not by-site among 3; set partition.kind and partition.clients",
        ),
        ({"data.train": "b,x"}, DataError, r"data\.train: unknown site 'x'; known: b, f, i"),
        (
            {"slices.called": "", "data.train": "phantom-brains-b"},
            DataError,
            r"data\.train: unknown site .*did you mean phantom-brains-b-t1",
        ),
        ({"slices.acceleration": 16.0}, ValueError, "lower the centre's share"),
        ({"slices.called": "b"}, DataError, "'b' is not a list of names; write it like ixi-t1=i"),
        (
            {"slices.called": "phantom-brains-b-t1=x+phantom-brains-f-t1=x"},
            DataError,
            r"slices\.called: .* gives two data sets one name",
        ),
        (
            {"data.name": "phantom-brains-b-t1+phantom-tumours"},
            DataError,
            "phantom-tumours: .*reconstruction is of slices with one channel",
        ),
        ({"public": "cifar10"}, DataError, "another number of channels"),
        ({"public": "phantom-brains-f-t1"}, DataError, "is a site's own, and cannot be the public"),
    ],
)
def test_what_cannot_be_is_said(changes, error, message):
    with pytest.raises(error, match=message):
        made(**changes)


def test_an_unknown_site_of_a_test_is_named():
    with pytest.raises(DataError, match=r"slices\.test: unknown site 'bb'; did you mean b\?"):
        measured_on("f,bb")
