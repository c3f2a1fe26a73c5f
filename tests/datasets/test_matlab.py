"""MATLAB files, as SciPy writes them, and damaged ones, which end no process."""

import zlib

import numpy as np
import pytest
from scipy.io import savemat

from datasets.matlab import read_array

MAP = np.array([[0, 7, 7], [0, 0, 300]])
NUMBERS = ["u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]


def save(path, packed=False, **arrays):
    savemat(path, arrays, do_compression=packed)
    return path


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", NUMBERS)
def test_an_array_is_found_among_others_and_read_in_its_type(tmp_path, kind, packed):
    array = MAP.astype(kind) if kind != "u1" else (MAP % 256).astype(kind)
    cell = np.array([1, "a"], dtype=object)
    path = save(tmp_path / "a.mat", packed, other=np.eye(3), cell=cell, inst_map=array, last="x")
    found = read_array(path, "inst_map")
    assert (found.dtype, found.tolist()) == (array.dtype, array.tolist())


def test_a_name_and_numbers_of_four_bytes_are_stored_short(tmp_path):
    path = save(tmp_path / "a.mat", m=np.array([[1, 2], [3, 4]], np.uint8))
    assert read_array(path, "m").tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (MAP + 1j, "not one of real numbers"),
        (np.array(["abc"]), "not one of real numbers"),
        ({"a": 1}, "not one of real numbers"),
        (np.array([1, "a"], dtype=object), "not one of real numbers"),
    ],
)
def test_what_is_no_array_of_real_numbers_is_refused(tmp_path, array, message):
    with pytest.raises(ValueError, match=message):
        read_array(save(tmp_path / "a.mat", inst_map=array), "inst_map")


def test_another_version_is_refused_saying_so(tmp_path):
    path = tmp_path / "a.mat"
    savemat(path, {"inst_map": MAP}, format="4")
    with pytest.raises(ValueError, match="not of version 5; save it with -v7"):
        read_array(path, "inst_map")
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM" + bytes(400))
    with pytest.raises(ValueError, match="not of version 5; save it with -v7"):
        read_array(path, "inst_map")


@pytest.mark.parametrize("packed", [False, True])
def test_every_byte_of_a_file_may_be_changed(tmp_path, packed):
    path = save(tmp_path / "a.mat", packed, inst_map=MAP.astype(float))
    raw = path.read_bytes()
    refused = 0
    for at in range(124, len(raw)):
        for value in (0x00, 0x0F, 0xF5, 0xFF):
            path.write_bytes(raw[:at] + bytes([value]) + raw[at + 1 :])
            try:
                assert isinstance(read_array(path, "inst_map"), np.ndarray)
            except ValueError:
                refused += 1
    assert refused > 100


def test_the_element_that_ended_the_process_is_refused(tmp_path):
    """The kind of the values is 0xF5, which there is not: SciPy looked it up beyond its table."""
    path = save(tmp_path / "a.mat", inst_map=np.zeros((4, 4)))
    raw = path.read_bytes()
    at = raw.index(b"inst_map") + 8
    path.write_bytes(raw[:at] + b"\xf5" + raw[at + 1 :])
    with pytest.raises(ValueError, match="its array is damaged"):
        read_array(path, "inst_map")


def test_an_array_that_unpacks_to_more_than_may_be_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.matlab.MOST", 1000)
    with pytest.raises(ValueError, match="larger than 1,000 bytes"):
        read_array(save(tmp_path / "a.mat", True, inst_map=np.zeros((99, 99))), "inst_map")
    assert len(zlib.compress(bytes(99 * 99 * 8))) < 1000
