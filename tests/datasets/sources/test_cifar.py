"""CIFAR: official batches are pickles, read as plain values; anything else in them is refused, not
run.
"""

import io
import os
import pickle

import numpy as np
import pytest
from PIL import Image

from fedtables.datasets import catalogue
from fedtables.datasets.source import DataError
from fedtables.datasets.sources import cifar
from fedtables.datasets.sources.cifar import (
    CLASSES,
    SPLITS,
    halved,
    read_batch,
)
from tests.datasets.promises import OF_FOLDERS, promised

CIFAR10, CIFAR100, CIFAR100_16, GREY, CALTECH, CINIC, HALVES = cifar.SOURCES


def batch(images, label_key, labels):
    """As the authors pickled it: Python 2 strings for keys, protocol 2, NumPy's module of that
    time.
    """
    content = {
        label_key: list(labels),
        "data": np.asarray(images, np.uint8).reshape(len(labels), 3072),
    }
    return pickle.dumps(content, protocol=2).replace(b"numpy._core", b"numpy.core")


def write_official(home):
    folder = home / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    for number in range(1, 6):
        images = np.full((2, 3072), number)
        (folder / f"data_batch_{number}").write_bytes(batch(images, "labels", [number, 0]))
    (folder / "test_batch").write_bytes(batch(np.full((1, 3072), 9), "labels", [9]))
    return folder


def test_a_batch_holds_red_then_green_then_blue_in_rows(tmp_path):
    (tmp_path / "b").write_bytes(batch([np.arange(3072) % 256], "labels", [3]))
    images, labels = read_batch(tmp_path / "b", "labels")
    assert (images.shape, images.dtype, labels.tolist(), labels.dtype) == (
        (1, 3, 32, 32),
        np.uint8,
        [3],
        np.int64,
    )
    assert images[0, 0, 1, :2].tolist() == [32, 33]
    assert images[0, 1, 0, 0] == 1024 % 256


def test_the_five_batches_of_cifar10_are_joined_in_order(tmp_path):
    write_official(tmp_path)
    splits = CIFAR10.load(tmp_path)
    assert splits["train"].labels.tolist() == [1, 0, 2, 0, 3, 0, 4, 0, 5, 0]
    assert splits["train"].images[:, 0, 0, 0].tolist() == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert splits["test"].labels.tolist() == [9]


def test_cifar100_is_read_by_its_fine_labels(tmp_path):
    folder = tmp_path / "cifar-100-python"
    folder.mkdir()
    for name, label in (("train", 99), ("test", 42)):
        content = {
            "data": np.zeros((1, 3072), np.uint8),
            "fine_labels": [label],
            "coarse_labels": [7],
        }
        (folder / name).write_bytes(pickle.dumps(content, protocol=2))
    splits = CIFAR100.load(tmp_path)
    assert (splits["train"].labels.tolist(), splits["test"].labels.tolist()) == ([99], [42])


def test_the_folder_may_lie_deeper_and_an_archive_must_be_unpacked(tmp_path):
    (tmp_path / "cifar-10-python.tar.gz").touch()
    with pytest.raises(DataError, match=r"cifar-10-python\.tar\.gz is not unpacked\. Unpack it"):
        catalogue.resolve("cifar10", home=tmp_path)
    write_official(tmp_path / "cifar-10-batches-py-target")  # as Keras unpacks it
    assert CIFAR10.load(tmp_path)["test"].labels.tolist() == [9]


class RunsACommand:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (self.path,))


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_malicious_batch_is_refused_and_not_executed(tmp_path, protocol):
    evil = {"data": RunsACommand(str(tmp_path / "executed")), "labels": [1]}
    (tmp_path / "b").write_bytes(pickle.dumps(evil, protocol=protocol))
    with pytest.raises(DataError, match=r"it asks for \w+\.mkdir, which no CIFAR file needs"):
        read_batch(tmp_path / "b", "labels")
    assert not (tmp_path / "executed").exists()


def test_a_batch_may_not_reach_through_numpy_to_other_modules(tmp_path):
    (tmp_path / "b").write_bytes(b"\x80\x04\x8c\x05numpy\x8c\x12ndarray.__reduce__\x93.")
    with pytest.raises(DataError, match="which no CIFAR file needs"):
        read_batch(tmp_path / "b", "labels")


class Reduced:
    """Pickled as a call and the state that its result is given."""

    def __init__(self, *parts):
        self.parts = parts

    def __reduce__(self):
        return self.parts


OBJECTS = (3, "|", None, None, None, 8, 8, 63)  # with these flags the bytes are pointers


@pytest.mark.parametrize(
    ("name", "state", "shape"),
    [
        ("O8", OBJECTS, (1, 384)),
        ("V8", OBJECTS, (1, 384)),
        ("V1", (3, "|", ("u1", (2**30,)), None, None, 2**30, 1, 0), (1, 3072)),
        ("u1", (3, "|", None, None, None, -1, -1, 0), (2**40, 3072)),
        ("u1", (3,), (1, 3072)),
    ],
)
def test_a_type_with_a_state_that_ends_numpy_is_refused(tmp_path, name, state, shape):
    dtype = Reduced(np.dtype, (name, False, True), state)
    data = Reduced(*np.zeros(1).__reduce__()[:2], (1, shape, dtype, False, bytes(3072)))
    (tmp_path / "b").write_bytes(pickle.dumps({"data": data, "labels": [1]}, protocol=2))
    with pytest.raises(DataError, match="not a whole batch"):
        read_batch(tmp_path / "b", "labels")


def pushed(value):
    """The part of a pickle that puts a value on its stack."""
    content = io.BytesIO()
    pickler = pickle._Pickler(content, 2)
    pickler.fast = True  # without a memo
    pickler.dump(value)
    return content.getvalue()[2:-1]


def test_a_type_that_grows_under_its_array_is_refused(tmp_path):
    """NumPy would read a megabyte for every byte that there is, which ends the process."""
    first, later = ((3, "|", None, None, None, size, 1, 0) for size in (1, 2**20))
    dtype = b"cnumpy\ndtype\n" + pushed(("V1", False, True)) + b"Rq\x00" + pushed(first) + b"b0"
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n" + pushed((0,)) + pushed("b")
    state = b"(" + pushed(1) + pushed((1, 3072)) + b"h\x00" + pushed(False) + pushed("a" * 3072)
    batch = b"}(" + pushed("data") + b"h\x01" + pushed("labels") + pushed([1]) + b"u."
    grown = b"h\x00" + pushed(later) + b"b0"
    (tmp_path / "b").write_bytes(
        b"\x80\x02" + dtype + array + b"tRq\x01" + state + b"tb0" + grown + batch
    )
    with pytest.raises(DataError, match="an array of other things than numbers"):
        read_batch(tmp_path / "b", "labels")


@pytest.mark.parametrize("labels", [[1.5], ["1"], [None], [[1]], [1 + 0j], np.array([0.5])])
def test_labels_that_are_no_whole_numbers_are_refused(tmp_path, labels):
    content = {"labels": labels, "data": np.zeros((1, 3072), np.uint8)}
    (tmp_path / "b").write_bytes(pickle.dumps(content, protocol=2))
    with pytest.raises(DataError, match=r"whole"):
        read_batch(tmp_path / "b", "labels")


@pytest.mark.parametrize(
    "content", [{}, {"labels": [1]}, [1, 2], {"data": np.zeros((1, 10), np.uint8), "labels": [1]}]
)
def test_a_pickle_that_is_no_batch_is_refused(tmp_path, content):
    (tmp_path / "b").write_bytes(pickle.dumps(content, protocol=2))
    with pytest.raises(DataError, match="not a whole batch"):
        read_batch(tmp_path / "b", "labels")


# -- in grey --


def test_two_by_two_pixels_become_their_mean():
    images = np.array([[[[1, 3, 0, 255], [5, 7, 0, 255]]]], np.uint8)
    assert halved(images).tolist() == [[[[4, 128]]]]


@pytest.mark.parametrize(("name", "side"), [("cifar100", 32), ("cifar100_16", 16)])
def test_either_form_of_cifar100_gives_sixteen_pixels_in_grey(tmp_path, name, side):
    assert GREY.files(tmp_path) == []
    assert catalogue.resolve("cifar100-grey", home=tmp_path).used == "shapes-100-grey"
    images = np.full((2, side, side, 3), 100, np.uint8)
    np.savez(tmp_path / f"{name}.npz", x_train=images, y_train=[7, 8], x_test=images, y_test=[0, 1])
    splits = GREY.load(tmp_path)
    assert splits["train"].images.shape == (2, *GREY.shape)
    assert (splits["test"].images == 100).all()
    assert splits["train"].labels.tolist() == [7, 8]


# -- CINIC-10 --


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(cifar, "EACH", 1)


def write_png(path, colour):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (32, 32), colour).save(path)


def write_cinic(home):
    for place, split in enumerate(SPLITS):
        for label, name in enumerate(CLASSES):
            write_png(home / "CINIC-10" / split / name / "cifar10-train-1.png", (place, label, 200))
    return home / "CINIC-10"


def test_the_three_official_splits_are_found_and_read(tmp_path):
    write_cinic(tmp_path)
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
    folder = write_cinic(tmp_path)
    Image.new("RGB", (31, 32)).save(folder / "train" / "frog" / "cifar10-train-1.png")
    with pytest.raises(DataError, match="Unpack CINIC-10 again"):
        CINIC.load(tmp_path)


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


test_what_every_reader_promises = promised(
    OF_FOLDERS, [(CIFAR10, write_official), (CINIC, write_cinic)]
)
