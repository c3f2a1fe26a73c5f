"""Real means verified: what a set's content is known to be decides its origin, not its shape."""

import csv
import os

import numpy as np
import pytest

from fedtables.datasets import catalogue, digests
from fedtables.datasets.catalogue import resolve, sources, state
from fedtables.datasets.source import SYNTHETIC, DataError
from tests.datasets.npz import write_npz


@pytest.fixture
def known(tmp_path, monkeypatch):
    """Makes the present content of a set the one that is known."""

    def know(name, home):
        found = {resolve(name, home=home).digest: "three black images"}
        monkeypatch.setattr(catalogue, "verified", lambda asked: found if asked == name else {})

    return know


def test_data_of_the_right_shape_and_another_content_are_unverified(tmp_path):
    write_npz(tmp_path, "mnist", 28)
    data = resolve("mnist", home=tmp_path)
    assert (data.used, data.origin, data.label) == ("mnist", "unverified", "MNIST (unverified)")


def test_the_content_that_is_known_is_real_in_whatever_file(tmp_path, known):
    write_npz(tmp_path, "mnist", 28)
    known("mnist", tmp_path)
    assert resolve("mnist", home=tmp_path).origin == "real"
    images = np.zeros((3, 28, 28), np.uint8)
    images[0, 0, 0] = 1
    arrays = {"x_test": images[1:2], "y_test": np.zeros(1, int), "y_train": np.zeros(3, int)}
    other = tmp_path / "other"
    other.mkdir()
    np.savez_compressed(other / "mnist.npz", x_train=images[1:2].repeat(3, 0), **arrays)
    assert resolve("mnist", home=other).origin == "real"
    np.savez_compressed(other / "mnist.npz", x_train=images, **arrays)
    catalogue._content.cache_clear()
    assert resolve("mnist", home=other).origin == "unverified"


def test_require_real_refuses_what_is_not_verified(tmp_path):
    write_npz(tmp_path, "mnist", 28)
    with pytest.raises(
        DataError, match=r"--require-real: MNIST is under .* nothing says it is real"
    ):
        resolve("mnist", require_real=True, home=tmp_path)


def test_a_file_that_keeps_its_size_and_time_is_read_again(tmp_path, known):
    write_npz(tmp_path, "mnist", 28)
    known("mnist", tmp_path)
    path = tmp_path / "mnist.npz"
    before = path.stat()
    write_npz(tmp_path, "mnist", 28, value=1)
    assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    catalogue._content.cache_clear()
    assert resolve("mnist", home=tmp_path).origin == "unverified"


def test_list_says_what_is_known_without_reading_a_file(tmp_path, known):
    assert state("mnist", tmp_path) == "absent"
    assert state("shapes", tmp_path) == "generated"
    assert state("digits", tmp_path) == "bundled, verified"
    write_npz(tmp_path, "mnist", 28)
    assert state("mnist", tmp_path) == "present, unverified as yet"
    known("mnist", tmp_path)
    assert state("mnist", tmp_path) == "present, verified"
    (tmp_path / "mnist.npz").write_bytes(b"half of it")
    assert state("mnist", tmp_path) == "unusable"


def test_known_digests_are_of_sets_that_there_are_and_of_one_each():
    with digests.VERIFIED.open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert len({line["sha256"] for line in lines}) == len(lines)
    assert all(len(bytes.fromhex(line["sha256"])) == 32 and line["what"] for line in lines)
    kinds = {name: entry.kind for name, entry in sources().items()}
    assert SYNTHETIC not in {kinds[line["set"]] for line in lines}
