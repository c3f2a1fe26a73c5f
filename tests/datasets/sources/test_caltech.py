"""Caltech-101 at 32 x 32: one npz of uneven classes, which nothing here can fetch."""

import numpy as np
import pytest

from datasets.source import DataError
from datasets.sources import caltech

[CALTECH] = caltech.SOURCES


def write(home, **arrays):
    np.savez(home / "caltech100_32.npz", **arrays)


def test_images_and_labels_are_read_channels_first_and_class_names_left_aside(tmp_path):
    images = np.zeros((2, 32, 32, 3), np.uint8)
    images[1, 4, 5] = (7, 8, 9)
    labels = np.array([99, 0], np.uint8)
    write(
        tmp_path,
        x_train=images,
        y_train=labels,
        x_test=images[1:],
        y_test=labels[:1],
        class_names=np.array(["Faces", "ant"]),
    )
    splits = CALTECH.load(tmp_path)
    assert {name: split.images.shape for name, split in splits.items()} == {
        "train": (2, 3, 32, 32),
        "test": (1, 3, 32, 32),
    }
    assert splits["train"].images[1, :, 4, 5].tolist() == [7, 8, 9]
    assert (splits["train"].labels.tolist(), splits["test"].labels.tolist()) == ([99, 0], [99])
    assert splits["train"].labels.dtype == np.int64


def test_a_file_without_its_arrays_is_refused_saying_how_to_make_it(tmp_path):
    write(tmp_path, x_train=np.zeros((1, 32, 32, 3), np.uint8), y_train=np.zeros(1, int))
    with pytest.raises(
        DataError, match=r"lacks the arrays x_test, y_test\. Unpack the official Caltech-101"
    ):
        CALTECH.load(tmp_path)


def test_the_recipe_names_the_sizes_that_are_checked_on_loading():
    train, test = CALTECH.sizes["train"], CALTECH.sizes["test"]
    assert f"{train + test:,} images" in CALTECH.how_to_get
    assert f"({train:,})" in CALTECH.how_to_get
    assert f"({test:,})" in CALTECH.how_to_get
