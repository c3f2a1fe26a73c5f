"""Digits: bundled with scikit-learn, read without importing it."""

import numpy as np
import sklearn.datasets

from fedtables.datasets import catalogue
from fedtables.datasets.sources import digits

DIGITS, WRITERS = digits.SOURCES


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


# -- by form --

FORM = (
    "0123456789" * 3
    + "0955650989841773510022782012633733466649150952820017"
    + "632174631391768431405369617544728225795488490898"
)
"""The digits of the form, as most of the runs have them."""


def is_within(few, many):
    """Whether `few` are `many`, of which some are left out."""
    rest = iter(many)
    return all(digit in rest for digit in few)


def test_a_form_has_the_digits_of_the_form_in_their_order_but_for_those_left_out(tmp_path):
    splits = WRITERS.load(tmp_path)
    labels = np.concatenate([split.labels for split in splits.values()])
    groups = np.concatenate([split.groups for split in splits.values()])
    written = ["".join(map(str, labels[groups == form])) for form in range(14)]
    assert [len(form) for form in written if len(form) < 130] == [126, 123, 128, 128, 122]
    assert max(map(len, written)) == len(FORM)
    other = [number for number, form in enumerate(written) if not is_within(form, FORM)]
    assert other == [2]  # one digit of it is another
    assert sum(a != b for a, b in zip(written[2], FORM, strict=True)) == 1


def test_the_forms_are_the_same_digits_and_no_form_is_in_both_splits(tmp_path):
    plain, forms = DIGITS.load(tmp_path), catalogue.load("digits-writers", tmp_path)
    for what in ("images", "labels"):
        first, second = (
            np.concatenate([getattr(split, what) for split in splits.values()])
            for splits in (plain, forms)
        )
        assert np.array_equal(first, second)
    assert [len(np.unique(split.groups)) for split in forms.values()] == [11, 3]
    pixels = forms["train"].images / 255
    assert abs(pixels.mean() - WRITERS.mean[0]) < 0.005
    assert abs(pixels.std() - WRITERS.std[0]) < 0.005
