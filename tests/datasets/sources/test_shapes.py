"""Generated shapes: always the same, and told apart by their figures."""

import colorsys
import hashlib

import numpy as np
import pytest

from datasets.sources import shapes
from datasets.sources.shapes import draw, draw_hundred, rgb


def test_the_same_seed_draws_the_same_images_and_another_seed_others():
    first, same, other = draw(50, 1), draw(50, 1), draw(50, 2)
    assert np.array_equal(first.images, same.images)
    assert np.array_equal(first.labels, same.labels)
    assert not np.array_equal(first.images, other.images)


@pytest.mark.parametrize("shifted", [False, True])
def test_classes_are_balanced_and_shuffled(shifted):
    labels = draw(200, 3, shifted).labels
    assert np.bincount(labels).tolist() == [20] * 10
    assert labels.tolist() != sorted(labels.tolist())


def test_the_two_sites_draw_the_same_figures_differently():
    here, there = draw(200, 1), draw(200, 1, shifted=True)
    assert np.array_equal(here.labels, there.labels)
    assert not np.array_equal(here.images, there.images)


@pytest.mark.parametrize("source", shapes.SOURCES, ids=lambda s: s.name)
def test_the_splits_have_the_stated_sizes_and_share_no_image(tmp_path, source):
    splits = source.load(tmp_path)
    assert {name: split.images.shape for name, split in splits.items()} == {
        name: (size, *source.shape) for name, size in source.sizes.items()
    }
    drawn = [image.tobytes() for split in splits.values() for image in split.images]
    assert len(set(drawn)) == len(drawn)


def test_shapes_need_no_files(tmp_path):
    assert [source.files(tmp_path) for source in shapes.SOURCES] == [[], [], []]


@pytest.mark.parametrize("source", [shapes.SOURCES[0], shapes.SOURCES[2]], ids=lambda s: s.name)
def test_the_stated_mean_and_deviation_are_those_of_the_training_images(tmp_path, source):
    images = source.load(tmp_path)["train"].images / 255
    assert images.mean(axis=(0, 2, 3)) == pytest.approx(source.mean, abs=0.02)
    assert images.std(axis=(0, 2, 3)) == pytest.approx(source.std, abs=0.02)


def linear_accuracy(train, test, inputs, classes):
    """Test accuracy of least squares on inputs (n, d) and a constant."""

    def table(split):
        values = inputs(split)
        values = values - values.mean(axis=1, keepdims=True)
        return np.hstack([values, np.ones((len(values), 1))])

    weights = np.linalg.lstsq(table(train), np.eye(classes)[train.labels], rcond=1e-2)[0]
    return ((table(test) @ weights).argmax(axis=1) == test.labels).mean()


def test_classes_can_be_told_apart_by_a_linear_rule():
    def grey(split):
        return split.images.mean(axis=1).reshape(len(split), -1) / 255

    assert linear_accuracy(draw(2000, 1), draw(500, 2), grey, 10) > 0.3


# -- a hundred classes --


def test_hundred_classes_are_balanced_shuffled_and_always_the_same():
    first, same, other = draw_hundred(300, 1), draw_hundred(300, 1), draw_hundred(300, 2)
    assert np.bincount(first.labels).tolist() == [3] * 100
    assert first.labels.tolist() != sorted(first.labels.tolist())
    assert np.array_equal(first.images, same.images)
    assert np.array_equal(first.labels, same.labels)
    assert not np.array_equal(first.images, other.images)


def test_a_hundred_classes_can_be_told_apart_by_a_linear_rule():
    def pixels(split):
        return split.images.reshape(len(split), -1) / 255

    assert (
        linear_accuracy(draw_hundred(4000, 101), draw_hundred(1000, 102), pixels, 100) > 0.1
    )  # chance: 0.01


def test_a_class_is_a_figure_in_a_hue():
    split = draw_hundred(2000, 5)
    disks = split.labels < 10  # figure 0; its ink covers the centre of most images
    centre = split.images[disks][:, :, 7:9, 7:9].mean(axis=(2, 3)) / 255
    hue = np.array([colorsys.rgb_to_hsv(*colour)[0] for colour in centre]) * 10
    away = (hue - split.labels[disks] + 5) % 10 - 5  # in hues, the short way round
    assert np.median(np.abs(away)) < 0.25
    assert (np.abs(away) < 0.5).mean() > 0.8


@pytest.mark.parametrize(
    ("hsv", "colour"),
    [
        ((0, 1, 1), (1, 0, 0)),
        ((1 / 6, 1, 1), (1, 1, 0)),
        ((1 / 3, 1, 0.5), (0, 0.5, 0)),
        ((2 / 3, 0.5, 1), (0.5, 0.5, 1)),
        ((0.3, 0, 0.7), (0.7, 0.7, 0.7)),
    ],
)
def test_a_hue_is_the_colour_it_names(hsv, colour):
    assert rgb(*(np.array([part]) for part in hsv))[0] == pytest.approx(colour)


# -- always the same --


def test_the_drawn_sets_are_those_of_earlier_releases():
    found = {}
    for source in shapes.SOURCES:
        test = source.load(None)["test"]
        found[source.name] = hashlib.sha256(
            test.images.tobytes() + test.labels.astype("<i8").tobytes()
        ).hexdigest()[:12]
    assert found == {
        "shapes": "b95eb310c05a",
        "shapes-shifted": "927bde414f38",
        "shapes-100": "537502c71122",
    }
