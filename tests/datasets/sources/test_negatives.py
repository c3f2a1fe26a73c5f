"""The negatives of the hundred classes: another set than its pattern, always the same."""

import hashlib

import numpy as np
import pytest

from datasets.sources import negatives, shapes
from datasets.sources.negatives import draw_negatives
from datasets.sources.shapes import draw_hundred

[NEGATIVES] = negatives.SOURCES


def test_classes_are_those_of_the_pattern_in_the_order_of_their_hues():
    pattern, drawn = draw_hundred(300, 7), draw_negatives(300, 7)
    assert np.array_equal(drawn.labels // 10, pattern.labels % 10)
    assert np.array_equal(drawn.labels % 10, pattern.labels // 10)
    assert np.bincount(drawn.labels).tolist() == [3] * 100


def test_half_of_the_images_are_exact_negatives_and_the_others_noisier():
    pattern, drawn = draw_hundred(400, 7), draw_negatives(400, 7)
    noise = drawn.images.astype(float) - (255 - pattern.images)
    exact = (noise == 0).all(axis=(1, 2, 3))
    assert 150 < exact.sum() < 250
    assert noise[~exact].std(axis=(1, 2, 3)).min() > 15
    assert abs(noise[~exact].mean()) < 5


def test_the_same_seed_draws_the_same_images_and_another_seed_others():
    first, same, other = draw_negatives(50, 1), draw_negatives(50, 1), draw_negatives(50, 2)
    assert np.array_equal(first.images, same.images)
    assert not np.array_equal(first.images, other.images)


def test_the_splits_have_the_stated_sizes_and_no_image_of_the_pattern():
    splits = NEGATIVES.load(None)
    assert {name: split.images.shape for name, split in splits.items()} == {
        "train": (4000, 3, 16, 16),
        "test": (1000, 3, 16, 16),
    }
    drawn = [image.tobytes() for split in splits.values() for image in split.images]
    patterns = [
        (255 - image).tobytes()
        for split in shapes.SOURCES[2].load(None).values()
        for image in split.images
    ]
    assert len({*drawn, *patterns}) == 10_000


def test_the_stated_mean_and_deviation_are_those_of_the_training_images():
    images = NEGATIVES.load(None)["train"].images / 255
    assert images.mean(axis=(0, 2, 3)) == pytest.approx(NEGATIVES.mean, abs=0.01)
    assert images.std(axis=(0, 2, 3)) == pytest.approx(NEGATIVES.std, abs=0.01)


def test_classes_can_be_told_apart_by_a_linear_rule():
    splits = NEGATIVES.load(None)

    def table(split):
        pixels = split.images.reshape(len(split), -1) / 255
        return np.hstack([pixels - pixels.mean(axis=1, keepdims=True), np.ones((len(pixels), 1))])

    weights = np.linalg.lstsq(
        table(splits["train"]), np.eye(100)[splits["train"].labels], rcond=1e-2
    )[0]
    found = (table(splits["test"]) @ weights).argmax(axis=1)
    assert (found == splits["test"].labels).mean() > 0.1  # chance: 0.01


def test_the_drawn_set_is_that_of_earlier_releases():
    test = NEGATIVES.load(None)["test"]
    assert (
        hashlib.sha256(test.images.tobytes() + test.labels.astype("<i8").tobytes()).hexdigest()[:12]
        == "ec972b3c897f"
    )
