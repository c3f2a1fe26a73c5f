"""Generated nuclei: numbered, some touching, of tissues that differ, the same every time."""

import hashlib

import numpy as np
import pytest

from datasets import catalogue
from datasets.sources import phantom_nuclei
from datasets.sources.monuseg import KUMAR, ORGANS
from datasets.sources.phantom_nuclei import SIDE, TISSUES, blurred, draw_image

NAMES = [entry.name for entry in phantom_nuclei.SOURCES]
DRAWN = {
    "phantom-nuclei": "42dbddfb8e23ee6e",
    "phantom-nuclei-shifted": "8582096819c3f172",
    "phantom-nuclei-third": "b5ff506b76bff2aa",
}
"""SHA-256 of the images and instance maps of the training split, first sixteen digits."""


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
    content.update(train.annotations["nuclei"].astype("<u2").tobytes())
    assert content.hexdigest()[:16] == DRAWN[name]


def test_every_organ_has_as_many_images_as_in_kumar_s_division(loaded):
    splits = loaded["phantom-nuclei"]
    for split, names in KUMAR.items():
        assert len(splits[split]) == len(names)
    counts = np.bincount(splits["train"].labels, minlength=len(ORGANS))
    assert counts.tolist() == [4, 4, 4, 4, 0, 0, 0, 0, 0]
    assert sorted(splits["other"].labels) == [4, 4, 5, 5, 6, 6]


@pytest.mark.parametrize("name", NAMES)
def test_every_image_has_nuclei_of_which_some_touch(loaded, name):
    for split in loaded[name].values():
        for objects in split.annotations["nuclei"]:
            assert objects.max() >= 8
            pairs = ((objects[:, 1:], objects[:, :-1]), (objects[1:], objects[:-1]))
            assert any(((a != b) & (a > 0) & (b > 0)).any() for a, b in pairs)


def test_nuclei_are_darker_than_the_ground(loaded):
    for splits in loaded.values():
        images, objects = splits["train"].images, splits["train"].annotations["nuclei"]
        for image, own in zip(images, objects, strict=True):
            grey = image.mean(axis=0)
            assert grey[own > 0].mean() < grey[own == 0].mean() - 20


def test_tissues_and_sites_differ_in_colour_and_patients_are_in_one_split(loaded):
    splits = loaded["phantom-nuclei"]["train"]
    colours = [splits.images[splits.labels == organ].mean(axis=(0, 2, 3)) for organ in range(4)]
    colours += [loaded[name]["train"].images.mean(axis=(0, 2, 3)) for name in NAMES[1:]]
    apart = [np.abs(a - b).max() for i, a in enumerate(colours) for b in colours[:i]]
    assert min(apart) > 3
    for splits in loaded.values():
        assert set(splits["train"].groups).isdisjoint(splits["test"].groups)


def test_a_tissue_is_drawn_from_its_generator_only():
    first, same, other = (
        draw_image(TISSUES["liver"], np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert first[0].shape == (3, SIDE, SIDE)
    assert all(np.array_equal(a, b) for a, b in zip(first, same, strict=True))
    assert not np.array_equal(first[0], other[0])


def test_blurring_takes_means_of_neighbours_with_edges_repeated():
    values = np.array([[0.0, 3.0, 6.0, 0.0]])
    assert blurred(values, 1, (1,)).tolist() == [[1.0, 3.0, 3.0, 2.0]]
    assert np.array_equal(blurred(values.T, 1, (0,)), blurred(values, 1, (1,)).T)


@pytest.mark.parametrize("real", ["monuseg", "monuseg-kumar", "tnbc", "cell17"])
def test_each_real_set_has_a_phantom_of_its_own_annotation(real):
    entry = catalogue.source(real)
    phantom = catalogue.source(entry.embedded)
    assert phantom.annotations == entry.annotations
    assert phantom.kind == "synthetic"


def test_the_three_sites_of_a_run_are_three_sets(tmp_path):
    used = {
        catalogue.resolve(name, embedded=True, home=tmp_path).digest
        for name in ("cell17", "monuseg", "tnbc")
    }
    assert len(used) == 3
