"""Generated shapes: always the same, and told apart by their figures."""

import numpy as np
import pytest

from datasets.sources import shapes
from datasets.sources.shapes import draw


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
    assert [source.files(tmp_path) for source in shapes.SOURCES] == [[], []]


def test_classes_can_be_told_apart_by_a_linear_rule():
    train, test = draw(2000, 1), draw(500, 2)

    def inputs(split):
        grey = split.images.mean(axis=1).reshape(len(split), -1) / 255
        grey = grey - grey.mean(axis=1, keepdims=True)
        return np.hstack([grey, np.ones((len(grey), 1))])

    weights = np.linalg.lstsq(inputs(train), np.eye(10)[train.labels], rcond=None)[0]
    assert ((inputs(test) @ weights).argmax(axis=1) == test.labels).mean() > 0.3
