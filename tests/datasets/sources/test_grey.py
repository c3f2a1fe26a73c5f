"""Colour images in grey, of half the pixels."""

import numpy as np
import pytest

from datasets.catalogue import resolve
from datasets.sources import cifar, grey
from datasets.sources.generated import SOURCES
from datasets.sources.grey import halved, luminance

[CIFAR] = grey.SOURCES


def test_luminance_weighs_green_most():
    images = np.zeros((4, 3, 1, 1), np.uint8)
    for channel in range(3):
        images[channel, channel] = 100
    images[3] = 255
    assert luminance(images)[:, 0, 0, 0].tolist() == [30, 59, 11, 255]


def test_a_half_is_rounded_up():
    images = np.zeros((1, 3, 1, 1), np.uint8)
    images[0, 2] = 250  # 0.114 * 250 = 28.5
    assert luminance(images).item() == 29


def test_two_by_two_pixels_become_their_mean():
    images = np.array([[[[1, 3, 0, 255], [5, 7, 0, 255]]]], np.uint8)
    assert halved(images).tolist() == [[[[4, 128]]]]


@pytest.mark.parametrize(("name", "side"), [("cifar100", 32), ("cifar100_16", 16)])
def test_either_form_of_cifar100_gives_sixteen_pixels_in_grey(tmp_path, name, side):
    assert CIFAR.files(tmp_path) == []
    assert resolve("cifar100-grey", home=tmp_path).used == "shapes-100-grey"
    images = np.full((2, side, side, 3), 100, np.uint8)
    np.savez(tmp_path / f"{name}.npz", x_train=images, y_train=[7, 8], x_test=images, y_test=[0, 1])
    splits = CIFAR.load(tmp_path)
    assert splits["train"].images.shape == (2, *CIFAR.shape)
    assert (splits["test"].images == 100).all()
    assert splits["train"].labels.tolist() == [7, 8]


def test_the_stand_in_has_the_labels_and_the_luminance_of_the_hundred_shapes():
    entries = {entry.name: entry for entry in SOURCES}
    colour, drawn = (entries[name].load(None) for name in ("shapes-100", "shapes-100-grey"))
    assert np.array_equal(drawn["test"].labels, colour["test"].labels)
    assert np.array_equal(drawn["test"].images, luminance(colour["test"].images))


def test_sizes_are_those_of_cifar100():
    assert CIFAR.sizes == cifar.SIZES
