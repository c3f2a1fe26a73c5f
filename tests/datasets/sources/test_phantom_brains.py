"""Slices of generated heads: those of a scanner, the same every time."""

import hashlib

import numpy as np
import pytest

from datasets import catalogue
from datasets.sources import phantom_brains
from datasets.sources.phantom_brains import HEADS, SCANNERS, SHOWN, draw_slices
from datasets.sources.phantom_tumours import SIDE, SITES, draw_volumes

NAMES = [entry.name for entry in phantom_brains.SOURCES]
DRAWN = {
    "phantom-brains-b-t1": "c734bb965b1bc247",
    "phantom-brains-b-t2": "ce433ad1fd127015",
    "phantom-brains-f-t1": "2d3d02aa050ebbb7",
    "phantom-brains-f-t2": "45a1c6b99e3267a4",
    "phantom-brains-i-t1": "37f8bf56784c9252",
    "phantom-brains-i-t2": "70da22084eeeb387",
    "phantom-brains-public-t1": "ecaaf5800bf909f4",
    "phantom-brains-public-t2": "525827d2b85aaf40",
}
"""SHA-256 of the images of the training split, first sixteen digits."""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    home = tmp_path_factory.mktemp("empty")
    splits = {name: catalogue.load(name, home) for name in NAMES}
    catalogue.load.cache_clear()
    return splits


def test_there_is_one_of_each_scanner_and_sequence():
    assert set(NAMES) == {
        f"phantom-brains-{site}-{modality}"
        for site in ("b", "f", "i", "public")
        for modality in ("t1", "t2")
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_drawn_sets_are_those_of_earlier_releases(loaded, name):
    content = hashlib.sha256(loaded[name]["train"].images.tobytes())
    assert content.hexdigest()[:16] == DRAWN[name]


@pytest.mark.parametrize("name", NAMES)
def test_sizes_are_as_stated_and_no_slice_is_black(loaded, name):
    for split, content in loaded[name].items():
        assert content.images.shape == (HEADS[split] * len(SHOWN), 1, SIDE, SIDE)
        assert len(content) == catalogue.source(name).sizes[split]
        assert content.images.any(axis=(1, 2, 3)).all()
        assert np.unique(content.groups, return_counts=True)[1].tolist() == [6] * HEADS[split]


def test_slices_are_those_of_a_head_of_the_scanner():
    heads = draw_volumes(HEADS["test"], 645, (2,))  # the third scanner's test heads
    t1, t2 = (draw_slices(modality, "i", "test") for modality in ("t1", "t2"))
    assert SHOWN == (7, 10, 13, 16, 19, 22)
    assert np.array_equal(t1.images[0, 0], heads.images[0, 0, 7])
    assert np.array_equal(t1.images[-1, 0], heads.images[3, 0, 22])
    assert np.array_equal(t2.images[8, 0], heads.images[1, 2, 13])
    assert t1.groups[[0, 5, 6, 23]].tolist() == [645_000, 645_000, 645_001, 645_003]


@pytest.mark.parametrize("site", SCANNERS)
def test_sequences_show_the_same_heads_in_other_tones(loaded, site):
    t1, t2 = (loaded[f"phantom-brains-{site}-{modality}"]["test"] for modality in ("t1", "t2"))
    assert np.array_equal(t1.groups, t2.groups)
    heads = draw_volumes(HEADS["test"], int(t1.groups[0]) // 1000, (SCANNERS[site],))
    oedema = heads.annotations["tumour"][:, SHOWN].reshape(t1.images.shape) == 2
    assert t2.images[oedema].mean() > 1.5 * t1.images[oedema].mean()


@pytest.mark.parametrize("modality", ["t1", "t2"])
def test_scanners_differ_in_how_much_brighter_the_front_is(loaded, modality):
    def front(site):
        images = loaded[f"phantom-brains-{site}-{modality}"]["train"].images
        back, front = images[:, :, : SIDE // 2], images[:, :, SIDE // 2 :]
        return front[front > 0].mean() / back[back > 0].mean()

    fronts = [front(site) for site in ("i", "b", "public", "f")]
    assert [SITES[SCANNERS[site]].gradient for site in ("i", "b", "public", "f")] == [
        -0.2,
        0.0,
        0.1,
        0.2,
    ]
    assert (np.diff(fronts) > 0.03).all()


def test_heads_are_in_one_split_of_one_scanner_and_of_no_other_set(loaded):
    groups = [
        set(split.groups.tolist())
        for name, splits in loaded.items()
        if name.endswith("t1")
        for split in splits.values()
    ]
    others = {1000 * seed + head for seed in range(631, 637) for head in range(1000)}
    assert sum(map(len, groups)) == len(set.union(*groups)) == 4 * 12
    assert others.isdisjoint(set.union(*groups))


def test_a_site_is_drawn_the_same_every_time(loaded):
    again = draw_slices("t1", "f", "test")
    assert np.array_equal(again.images, loaded["phantom-brains-f-t1"]["test"].images)
