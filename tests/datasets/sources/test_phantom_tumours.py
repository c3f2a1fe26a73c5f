"""Generated heads: nested parts, tumours of many sizes, the same every time."""

import hashlib

import numpy as np
import pytest

from datasets import catalogue
from datasets.sources import phantom_tumours
from datasets.sources.phantom_tumours import LEAST, MODALITIES, PER_HEAD, SITES, draw_head

NAMES = [entry.name for entry in phantom_tumours.SOURCES]
DRAWN = {
    "phantom-tumours": "9f57c9508d3a6a2f",
    "phantom-volumes": "13bb61258a197c14",
    "phantom-volumes-public": "38c1fb0bff414fa1",
}
"""SHA-256 of the images and parts of the training split, first sixteen digits."""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    home = tmp_path_factory.mktemp("empty")
    splits = {name: catalogue.load(name, home) for name in NAMES}
    catalogue.load.cache_clear()
    return splits


@pytest.mark.parametrize("name", NAMES)
def test_the_drawn_sets_are_those_of_earlier_releases(loaded, name):
    train = loaded[name]["train"]
    content = hashlib.sha256(train.images.tobytes())
    content.update(train.annotations["tumour"].tobytes())
    assert content.hexdigest()[:16] == DRAWN[name]


@pytest.mark.parametrize("name", ["phantom-volumes", "phantom-volumes-public"])
def test_every_tumour_has_three_nested_parts(loaded, name):
    for split in loaded[name].values():
        for parts in split.annotations["tumour"]:
            assert set(np.unique(parts)) == {0, 1, 2, 4}
            whole, core, necrosis = parts > 0, np.isin(parts, (1, 4)), parts == 1
            assert whole.sum() > core.sum() > necrosis.sum() > 0
            beside = np.zeros_like(core)  # necrosis touches nothing but itself and what enhances
            for axis in range(3):
                for shift in (-1, 1):
                    beside |= np.roll(necrosis, shift, axis)
            assert not (beside & (parts == 0)).any()


def test_tumours_differ_in_size_by_far(loaded):
    for name in NAMES:
        split = loaded[name]["train"]
        tumour = split.annotations["tumour"] > 0
        sizes = np.bincount(
            split.groups - split.groups.min(),
            tumour.sum(axis=(1, 2)).reshape(len(tumour), -1).sum(axis=1),
        )
        sizes = sizes[sizes > 0]
        assert sizes.max() > 10 * sizes.min()


def test_modalities_show_what_they_should(loaded):
    train = loaded["phantom-volumes"]["train"]
    parts = train.annotations["tumour"]
    channel = {name: train.images[:, MODALITIES.index(name)] for name in MODALITIES}

    def tone(name, part):
        return channel[name][parts == part].mean()

    assert tone("t1ce", 4) > 1.5 * tone("t1", 4)
    assert tone("t2", 2) > 1.5 * tone("t1", 2)
    assert tone("flair", 2) > tone("flair", 1)


def test_sites_differ_and_take_turns(loaded):
    train = loaded["phantom-volumes"]["train"]
    assert np.bincount(train.labels).tolist() == [8, 8, 8]
    assert set(loaded["phantom-volumes-public"]["train"].labels) == {3}
    tones = [train.images[train.labels == site, 0].mean() for site in range(3)]
    assert min(abs(a - b) for i, a in enumerate(tones) for b in tones[:i]) > 1


def test_slices_show_the_tumour_and_are_few_of_each_head(loaded):
    for split in loaded["phantom-tumours"].values():
        assert split.annotations["tumour"].sum(axis=(1, 2)).min() >= LEAST
        assert set(np.unique(split.annotations["tumour"])) == {0, 1}
        assert np.unique(split.groups, return_counts=True)[1].max() <= PER_HEAD


def test_heads_are_in_one_split_of_one_set(loaded):
    groups = [set(split.groups) for splits in loaded.values() for split in splits.values()]
    assert len(set.union(*groups)) == sum(map(len, groups))


def test_a_head_is_drawn_from_its_generator_only():
    first, same, other = (draw_head(SITES[1], np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, same, strict=True))
    assert not np.array_equal(first[1], other[1])


def test_each_real_set_has_a_phantom_of_its_own_annotation():
    for real in ("brats2018", "brats2018-slices", "brats2020", "lgg-mri"):
        entry = catalogue.source(real)
        phantom = catalogue.source(entry.embedded)
        kinds = [(a.kind, a.size) for a in (entry.annotations | {}).values()]
        assert [(a.kind, a.size) for a in phantom.annotations.values()] == kinds
        assert phantom.shape[0] == entry.shape[0]
