"""Digits: bundled with scikit-learn, read without importing it."""

import numpy as np
import sklearn.datasets

from fedtables.datasets.sources import digits

[DIGITS] = digits.SOURCES


def test_the_digits_are_those_of_scikit_learn(tmp_path):
    official = sklearn.datasets.load_digits()
    splits = DIGITS.load(tmp_path)
    images = np.concatenate([splits["train"].images, splits["test"].images])
    labels = np.concatenate([splits["train"].labels, splits["test"].labels])
    assert np.array_equal(labels, official.target)
    assert np.array_equal(images[:, 0], official.images.astype(int) * 255 // 16)


def test_the_stated_mean_and_deviation_are_those_of_the_training_pixels(tmp_path):
    pixels = DIGITS.load(tmp_path)["train"].images / 255
    assert abs(pixels.mean() - DIGITS.mean[0]) < 0.005
    assert abs(pixels.std() - DIGITS.std[0]) < 0.005
