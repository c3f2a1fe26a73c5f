"""Samples with targets for every pixel: sites, patches, windows and who holds what."""

from dataclasses import replace

import pytest
import torch

from fedtables.benchmarks.scenarios import pixels
from fedtables.benchmarks.scenarios.configuration import Configuration
from fedtables.benchmarks.scenarios.scenario import DataSets
from fedtables.benchmarks.scenarios.sites import official_labels
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.datasets import catalogue
from fedtables.datasets.partitions import PartitionError
from fedtables.datasets.source import DataError
from fedtables.federation.seeds import Seeds
from fedtables.federation.tasks.pixels import BRATS, TUMOUR, Nuclei, Regions
from fedtables.federation.windows import Window

ORGANS = "breast+liver+kidney+prostate"
NUCLEI = {
    "data.name": "phantom-nuclei",
    "data.task": "nuclei",
    "data.image_size": 48,
    "partition.kind": "by-site",
    "partition.clients": 4,
    "network.client": "unet-narrow",
    "network.server": "unet-narrow",
    "local.epochs": 1,
    "local.batch_size": 4,
    "server.epochs": 1,
    "server.batch_size": 4,
    "pixels.cut": True,
    "pixels.patches": 3,
    "pixels.labels": ORGANS,
}
TUMOURS = {
    **{name: value for name, value in NUCLEI.items() if not name.startswith("pixels.")},
    "data.name": "phantom-tumours",
    "data.task": "tumour",
    "data.image_size": 32,
    "partition.kind": "by-size",
    "partition.clients": 3,
}
SITES = {
    **{name: value for name, value in NUCLEI.items() if name != "pixels.labels"},
    "data.name": "phantom-nuclei+phantom-nuclei-shifted",
    "pixels.called": "phantom-nuclei-shifted=bluer",
    "partition.clients": 2,
}


def made(config, device="cpu", seeds=None, **changes):
    """The scenario's parts of a configuration."""
    configuration = Configuration.parse(config | changes)
    first, *others = map(catalogue.resolve, configuration.data.name.split("+"))
    return pixels.parts(
        configuration, DataSets(first, others=tuple(others)), seeds or Seeds(), device
    )


def measured_on(config, **changes):
    """The test samples by site."""
    configuration = Configuration.parse(config | changes)
    sources = [catalogue.resolve(name) for name in configuration.data.name.split("+")]
    return pixels.test_sets(configuration, sources, "cpu")


def held(client):
    return client.shard.images, client.shard.targets


def test_a_class_of_a_set_is_a_client_whose_images_are_cut_to_patches():
    parts = made(NUCLEI)
    assert [len(client.shard) for client in parts.clients] == [4 * 9] * 4
    images, targets = held(parts.clients[0])
    assert images.shape[1:] == (3, 48, 48)
    assert targets.shape[1:] == (48, 48)
    assert parts.image_shape == (3, 48, 48)
    assert parts.task == Nuclei()
    whole = catalogue.load("phantom-nuclei")["train"]
    first = next(n for n, label in enumerate(whole.labels) if label == 0)
    assert torch.equal(images[0], torch.from_numpy(whole.images[first, :, :48, :48]))
    last = torch.from_numpy(whole.annotations["nuclei"][first, -48:, -48:].astype("int64"))
    assert any(torch.equal(last, patch) for patch in targets)


def test_test_images_are_whole_and_of_every_class_and_seen_through_windows():
    test = made(NUCLEI).test
    assert test.images.shape == (8, 3, 96, 96)
    assert test.window == Window((48, 48), 0.25)
    assert len(test.groups.unique()) == 8
    [(_, again)] = measured_on(NUCLEI).items()
    assert again.digest == test.digest
    assert not made(NUCLEI).further_tests


def test_one_class_trains_alone_and_is_measured_on_all():
    alone = made(NUCLEI, **{"data.train": "liver", "partition.clients": 1})
    together = made(NUCLEI)
    [client] = alone.clients
    assert client.digest == together.clients[1].digest
    assert torch.equal(held(client)[0], held(together.clients[1])[0])
    assert alone.test.digest == together.test.digest


def test_each_set_is_a_site_of_its_own_name_and_a_cell_is_measured_on_one_or_on_all():
    parts = made(SITES)
    assert len(parts.clients) == 2
    names = {
        test: list(measured_on(SITES, **{"pixels.test": test})) for test in ("bluer", "average")
    }
    assert names == {"bluer": ["bluer"], "average": ["phantom-nuclei", "bluer"]}
    digests = {made(SITES, **{"pixels.test": test}).test.digest for test in names}
    assert digests == {parts.test.digest}  # so that both share their fits
    [(name, further)] = parts.further_tests.items()
    assert (name, further.digest) == ("bluer", measured_on(SITES)["bluer"].digest)
    with pytest.raises(DataError, match=r"unknown site 'blue'.*bluer"):
        measured_on(SITES, **{"pixels.test": "blue"})
    with pytest.raises(
        DataError, match=r"bluer has no test samples.*pixels\.least \(1000000\).*: none"
    ):
        measured_on(SITES, **{"pixels.test": "bluer", "pixels.least": 10**6})
    with pytest.raises(DataError, match=r"data\.train: unknown site 'red'"):
        made(SITES, **{"data.train": "red"})


def test_subjects_are_divided_by_the_size_of_their_tumours_and_none_is_on_two_sides():
    parts = made(TUMOURS, **{"partition.validation_share": 0.25})
    areas = [(held(client)[1] > 0).sum().item() / len(client.shard) for client in parts.clients]
    assert areas == sorted(areas)
    assert parts.task == Regions(TUMOUR)
    assert parts.test.window is None
    assert parts.test.images.shape[2:] == (32, 32)
    assert len(parts.validation.images)
    every = sum(len(client.shard) for client in parts.clients) + len(parts.validation.images)
    assert every == len(catalogue.load("phantom-tumours")["train"])
    seen = {bytes(image.numpy()) for client in parts.clients for image in held(client)[0]}
    assert not seen & {bytes(image.numpy()) for image in parts.validation.images}
    assert not seen & {bytes(image.numpy()) for image in parts.test.images}


@pytest.mark.parametrize("config", [TUMOURS, NUCLEI], ids=["tumours", "nuclei"])
def test_a_limit_of_test_samples_is_each_site_s_and_keeps_groups_whole(config):
    everything, some = made(config).test, made(config, **{"partition.test_limit": 1}).test
    assert measured_on(config, **{"partition.test_limit": 1}).popitem()[1].digest == some.digest
    sites = 4 if config is NUCLEI else 1
    kept = some.groups.unique()
    assert len(kept) == sites < len(everything.groups.unique())
    whole = [(everything.groups == group).sum() for group in kept]
    assert len(some.images) == sum(whole)


def test_samples_with_too_little_that_is_labelled_are_left_out_in_training_and_tests():
    parts = made(TUMOURS, **{"pixels.least": 10})
    stored = {
        name: (split.annotations["tumour"] > 0).sum(axis=(1, 2))
        for name, split in catalogue.load("phantom-tumours").items()
    }
    assert sum(len(client.shard) for client in parts.clients) == (stored["train"] >= 10).sum()
    assert len(parts.test.images) == (stored["test"] >= 10).sum()


def test_volumes_have_three_regions_and_a_depth_of_their_own():
    volumes = {**TUMOURS, "data.name": "phantom-volumes", "partition.kind": "by-class"}
    parts = made(volumes, **{"data.depth": 16})
    assert parts.image_shape == (4, 16, 32, 32)
    assert parts.task == Regions(BRATS)
    assert held(parts.clients[0])[0].shape[1:] == (4, 16, 32, 32)
    assert len(parts.public) == 0


@pytest.mark.parametrize("config", [NUCLEI, TUMOURS, SITES])
def test_a_plan_knows_as_many_samples_of_the_same_shapes(config):
    real, planned = made(config), made(config, device="meta")
    for one, other in zip(real.clients, planned.clients, strict=True):
        for a, b in zip(held(one), held(other), strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
    assert real.test.images.shape == planned.test.images.shape


def test_a_plan_without_the_files_knows_how_many_images_there_are_of_an_organ():
    source = catalogue.source("monuseg-kumar")
    absent = replace(catalogue.resolve("phantom-nuclei"), used=source.name, digest="")
    labels = official_labels(absent)
    organs = [source.class_names.index(name) for name in ORGANS.split("+")]
    assert [int((labels["train"] == organ).sum()) for organ in organs] == [4] * 4
    assert [int((labels["test"] == organ).sum()) for organ in organs] == [2] * 4


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"partition.kind": "niid1"}, PartitionError, "use by-site, by-size or by-class"),
        ({"partition.clients": 3}, PartitionError, "4 sites are as many clients, not 3"),
        ({"pixels.labels": "breast+brian"}, DataError, "unknown class 'brian'.*brain"),
        ({"pixels.reading": "printed"}, SpecError, "'printed'; known: paper, released"),
        ({"data.image_size": 112}, DataError, "samples of 96 pixels hold no patches of 112"),
    ],
)
def test_what_cannot_be_is_said(changes, error, message):
    settings = {**NUCLEI, **changes}
    if "partition.kind" in changes:
        settings |= {"data.train": "liver"}
    with pytest.raises(error, match=message):
        made(settings)
