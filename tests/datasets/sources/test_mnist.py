"""MNIST and Fashion-MNIST: both layouts are read, damage is named, downloads are checked."""

import gzip

import numpy as np
import pytest

from fedtables.datasets import catalogue
from fedtables.datasets.source import DataError
from fedtables.datasets.sources import mnist
from fedtables.datasets.sources.mnist import read_idx
from tests.datasets.promises import OF_FOLDERS, promised
from tests.datasets.serving import serve

MNIST, FASHION = mnist.SOURCES
PARTS = {
    "train-images-idx3-ubyte": np.arange(3 * 28 * 28).reshape(3, 28, 28) % 251,
    "train-labels-idx1-ubyte": np.array([5, 0, 4]),
    "t10k-images-idx3-ubyte": np.arange(2 * 28 * 28).reshape(2, 28, 28) % 241,
    "t10k-labels-idx1-ubyte": np.array([7, 2]),
}


def idx(array):
    array = np.asarray(array)
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return b"\x00\x00\x08" + bytes([array.ndim]) + sizes + array.astype(np.uint8).tobytes()


def write_official(home, folder="MNIST"):
    raw = home / folder / "raw"
    raw.mkdir(parents=True)
    for name, array in PARTS.items():
        (raw / name).write_bytes(idx(array))


def test_an_idx_file_is_read_in_its_shape(tmp_path):
    (tmp_path / "f").write_bytes(
        b"\x00\x00\x08\x02\x00\x00\x00\x02\x00\x00\x00\x03\x01\x02\x03\x04\x05\xff"
    )
    assert read_idx(tmp_path / "f").tolist() == [[1, 2, 3], [4, 5, 255]]


def test_an_idx_file_cut_anywhere_is_refused_with_advice(tmp_path):
    raw = idx([[1, 2, 3], [4, 5, 6]])
    for length in range(len(raw)):
        (tmp_path / "f").write_bytes(raw[:length])
        with pytest.raises(DataError, match="is not an IDX file of unsigned bytes"):
            read_idx(tmp_path / "f")


@pytest.mark.parametrize(
    "raw", [b"\x1f\x8b\x08\0\0\0\0\1\7", b"\0\0\x0d\1\0\0\0\1\7", b"<html>", idx([1]) + b"\0"]
)
def test_a_file_of_another_format_or_length_is_refused(tmp_path, raw):
    (tmp_path / "f").write_bytes(raw)
    with pytest.raises(DataError, match="not an IDX file of unsigned bytes"):
        read_idx(tmp_path / "f")


@pytest.mark.parametrize(("source", "folder"), [(MNIST, "MNIST"), (FASHION, "FashionMNIST")])
def test_the_official_files_are_found_and_read(tmp_path, source, folder):
    write_official(tmp_path, folder)
    assert [path.name for path in source.files(tmp_path)] == list(PARTS)
    splits = source.load(tmp_path)
    assert splits["train"].images.shape == (3, 1, 28, 28)
    assert splits["train"].images[0, 0, 0, :3].tolist() == [0, 1, 2]
    assert splits["train"].labels.tolist() == [5, 0, 4]
    assert splits["test"].images.shape == (2, 1, 28, 28)
    assert splits["test"].labels.tolist() == [7, 2]
    assert splits["test"].labels.dtype == np.int64


@pytest.mark.parametrize(
    ("folder", "old", "new"),
    [
        ("MNIST/raw", "-ubyte", "-ubyte.gz"),
        ("mnist", "-idx", ".idx"),
        ("torch/MNIST/raw", "-idx", ".idx"),
        ("FASHION-MNIST", "-ubyte", "-UBYTE.GZ"),
    ],
)
def test_the_files_are_read_under_their_other_names(tmp_path, folder, old, new):
    for name, array in PARTS.items():
        path = tmp_path / folder / name.replace(old, new)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(idx(array)) if "gz" in new.lower() else idx(array))
    source = FASHION if "FASHION" in folder else MNIST
    assert source.load(tmp_path)["train"].labels.tolist() == [5, 0, 4]
    assert source.load(tmp_path)["test"].labels.tolist() == [7, 2]


def test_files_that_may_be_of_either_set_are_refused(tmp_path):
    (tmp_path / "train-images-idx3-ubyte.gz").touch()
    with pytest.raises(DataError, match=r"ubyte\.gz may be of MNIST or of Fashion-MNIST\. Move it"):
        catalogue.resolve("mnist", home=tmp_path)


def test_the_npz_of_keras_is_read_and_preferred(tmp_path):
    write_official(tmp_path)
    images, labels = np.full((1, 28, 28), 9, np.uint8), np.array([3], np.uint8)
    np.savez(tmp_path / "mnist.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
    assert MNIST.files(tmp_path) == [tmp_path / "mnist.npz"]
    assert MNIST.load(tmp_path)["train"].labels.tolist() == [3]
    assert FASHION.files(tmp_path) == []


@pytest.mark.parametrize("source", [MNIST, FASHION], ids=["mnist", "fashion-mnist"])
def test_a_download_of_other_files_is_refused(tmp_path, monkeypatch, source):
    class Anything(dict):
        def __contains__(self, path):
            return path.endswith("-ubyte.gz")

        def __missing__(self, path):
            return gzip.compress(b"something else")

    serve(monkeypatch, Anything())
    with pytest.raises(DataError, match="gave another file than the official one, whose SHA-256"):
        source.download(tmp_path)
    assert source.files(tmp_path) == []


test_what_every_reader_promises = promised(OF_FOLDERS, [(MNIST, write_official)])
