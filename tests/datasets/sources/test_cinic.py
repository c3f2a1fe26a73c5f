"""CINIC-10: image folders in the official layout, and CIFAR-10 in its place."""

import numpy as np
import pytest
from PIL import Image

from datasets.source import DataError
from datasets.sources import cinic
from datasets.sources.cinic import CLASSES, SPLITS, images_of, read_split
from tests.datasets.promises import OF_FOLDERS, promised

CINIC, HALVES = cinic.SOURCES


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(cinic, "EACH", 1)


def read_folder(folder):
    return read_split(images_of(folder))


def write_png(path, colour):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (32, 32), colour).save(path)


def write_official(home):
    for place, split in enumerate(SPLITS):
        for label, name in enumerate(CLASSES):
            write_png(home / "CINIC-10" / split / name / "cifar10-train-1.png", (place, label, 200))
    return home / "CINIC-10"


def test_a_folder_is_read_by_class_and_then_by_file_name(tmp_path):
    for name in CLASSES:
        (tmp_path / name).mkdir()
    write_png(tmp_path / "truck" / "b.png", (1, 2, 3))
    write_png(tmp_path / "truck" / "a.png", (4, 5, 6))
    write_png(tmp_path / "cat" / "z.png", (7, 8, 9))
    split = read_folder(tmp_path)
    assert split.labels.tolist() == [3, 9, 9]
    assert split.images[:, :, 0, 0].tolist() == [[7, 8, 9], [4, 5, 6], [1, 2, 3]]
    assert split.images.shape == (3, 3, 32, 32)


def test_the_three_official_splits_are_found_and_read(tmp_path):
    write_official(tmp_path)
    assert len(CINIC.files(tmp_path)) == 30
    splits = CINIC.load(tmp_path)
    assert {name: len(split) for name, split in splits.items()} == {
        "train": 10,
        "valid": 10,
        "test": 10,
    }
    assert splits["valid"].images[4, :, 0, 0].tolist() == [1, 4, 200]
    assert splits["valid"].labels.tolist() == list(range(10))


def test_images_of_different_sizes_are_refused_with_advice(tmp_path):
    write_png(tmp_path / "frog" / "a.png", (1, 2, 3))
    Image.new("RGB", (31, 32)).save(tmp_path / "frog" / "b.png")
    with pytest.raises(DataError, match="Unpack CINIC-10 again"):
        read_folder(tmp_path)


def test_the_stand_in_deals_cifar10_alternately_to_train_and_valid(tmp_path):
    images = np.arange(5, dtype=np.uint8)[:, None, None, None] * np.ones((5, 32, 32, 3), np.uint8)
    np.savez(
        tmp_path / "cifar10.npz",
        x_train=images,
        y_train=np.arange(5),
        x_test=images[:1],
        y_test=np.array([8]),
    )
    splits = HALVES.load(tmp_path)
    assert splits["train"].labels.tolist() == [0, 2, 4]
    assert splits["valid"].labels.tolist() == [1, 3]
    assert splits["valid"].images[1, :, 9, 9].tolist() == [3, 3, 3]
    assert splits["test"].labels.tolist() == [8]


test_what_every_reader_promises = promised(OF_FOLDERS, [(CINIC, write_official)])
