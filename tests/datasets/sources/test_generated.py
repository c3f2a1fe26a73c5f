"""Generated sets: what is promised of all, and what is special about each kind."""

import numpy as np
import pytest

from fedtables.datasets import catalogue
from fedtables.datasets.source import IGNORE, annotations_of
from fedtables.datasets.sources import generated
from fedtables.datasets.sources.generated import (
    PER_HEAD,
    draw_classes,
    draw_few,
    draw_films,
    draw_heads,
    draw_negatives,
    draw_scenes,
    draw_slices,
)
from fedtables.datasets.sources.monuseg import KUMAR, ORGANS

ENTRIES = {entry.name: entry for entry in generated.SOURCES}
TONED = sorted(name for name in ENTRIES if "brains" not in name and "nuclei" not in name)
"""Sets whose mean and deviation are their own."""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """All of them, loaded as users load them, which checks sizes, classes and annotations."""
    home = tmp_path_factory.mktemp("empty")
    splits = {name: catalogue.load(name, home) for name in ENTRIES}
    catalogue.load.cache_clear()
    return splits


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_splits_share_no_image_and_no_group(loaded, name):
    splits = loaded[name].values()
    drawn = [image.tobytes() for split in splits for image in split.images]
    assert len(set(drawn)) == len(drawn)
    groups = [set(split.groups.tolist()) for split in splits if split.groups is not None]
    assert sum(map(len, groups)) == len(set().union(*groups))


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_a_set_is_drawn_the_same_every_time(loaded, name):
    again = ENTRIES[name].load(None)["test"]
    assert np.array_equal(again.images, loaded[name]["test"].images)
    assert np.array_equal(again.labels, loaded[name]["test"].labels)


@pytest.mark.parametrize("name", TONED)
def test_the_stated_mean_and_deviation_are_near_those_of_the_training_images(loaded, name):
    images = loaded[name]["train"].images / 255
    assert images.mean() == pytest.approx(np.mean(ENTRIES[name].mean), abs=0.09)
    assert images.std() == pytest.approx(np.mean(ENTRIES[name].std), abs=0.08)


# -- images with a class --


@pytest.mark.parametrize(
    ("draw", "classes"),
    [
        (lambda count: draw_classes(count, 1), 10),
        (lambda count: draw_classes(count, 1, shifted=True), 10),
        (lambda count: draw_classes(count, 1, 10), 100),
        (lambda count: draw_negatives(count, 1), 100),
        (lambda count: draw_few(count, 1, 8, 3), 8),
        (lambda count: draw_few(count, 1, 11, 1), 11),
        (lambda count: draw_scenes(count, 1), 6),
    ],
)
def test_classes_are_balanced_and_shuffled(draw, classes):
    labels = draw(3 * classes).labels
    assert np.bincount(labels).tolist() == [3] * classes
    assert labels.tolist() != sorted(labels.tolist())


def test_negatives_are_another_set_with_classes_in_the_order_of_their_hues():
    pattern, drawn = draw_classes(300, 7, 10), draw_negatives(300, 7)
    assert np.array_equal(drawn.labels // 10, pattern.labels % 10)
    assert np.array_equal(drawn.labels % 10, pattern.labels // 10)
    assert np.array_equal(drawn.images, 255 - pattern.images)


# -- films --


def test_findings_are_the_real_sets_and_some_are_uncertain_in_training_alone(loaded):
    for name, real in (("phantom-films", "nih-cxr14"), ("phantom-films-shifted", "chexpert")):
        own = annotations_of(ENTRIES[name])["findings"].names
        assert own == annotations_of(catalogue.source(real))["findings"].names
    uncertain = {
        (name, split): (content.annotations["findings"] == IGNORE).any()
        for name in ("phantom-films", "phantom-films-shifted")
        for split, content in loaded[name].items()
    }
    assert [key for key, some in uncertain.items() if some] == [("phantom-films-shifted", "train")]


def test_a_patient_has_one_or_two_films_of_the_same_findings():
    drawn = draw_films(400, 5, ("mass", "edema"))
    of_patient = np.unique(drawn.groups, return_counts=True)[1]
    assert set(of_patient) == {1, 2}
    for patient in np.unique(drawn.groups):
        assert len(np.unique(drawn.annotations["findings"][drawn.groups == patient], axis=0)) == 1


# -- nuclei and heads --


def test_every_organ_has_as_many_images_as_in_kumar_s_division(loaded):
    splits = loaded["phantom-nuclei"]
    assert {split: len(content) for split, content in splits.items()} == {
        split: len(names) for split, names in KUMAR.items()
    }
    counts = np.bincount(splits["train"].labels, minlength=len(ORGANS))
    assert counts.tolist() == [4, 4, 4, 4, 0, 0, 0, 0, 0]


def test_slices_are_those_of_a_head_of_the_scanner():
    heads = draw_heads(4, 645, (2,))  # the third scanner's test heads
    t1, t2 = (draw_slices("i", modality, "test") for modality in ("t1", "t2"))
    assert PER_HEAD == (7, 10, 13, 16, 19, 22)
    assert np.array_equal(t1.images[0, 0], heads.images[0, 0, 7])
    assert np.array_equal(t1.images[-1, 0], heads.images[3, 0, 22])
    assert np.array_equal(t2.images[8, 0], heads.images[1, 2, 13])
    assert t1.groups[[0, 5, 6, 23]].tolist() == [645_000, 645_000, 645_001, 645_003]


def test_slices_with_a_tumour_have_four_pixels_of_it_at_least_and_heads_are_of_one_set(loaded):
    for split in loaded["phantom-tumours"].values():
        assert split.annotations["tumour"].sum(axis=(1, 2)).min() >= 4
    groups = [
        set(split.groups.tolist())
        for name in ENTRIES
        if name in ("phantom-tumours", "phantom-volumes") or name.endswith("-t1")
        for split in loaded[name].values()
    ]
    assert sum(map(len, groups)) == len(set().union(*groups))
