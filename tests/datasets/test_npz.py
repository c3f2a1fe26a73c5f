"""Archives of arrays that lie: how they are packed, what they hold, how large they are."""

import io
import zipfile

import numpy as np
import pytest

from fedtables.datasets.npz import read_arrays
from fedtables.datasets.sources.cifar import read_batch
from fedtables.results.files import DataError


def header(shape, dtype="|u1"):
    """The head of a NumPy file, and no body."""
    whole = io.BytesIO()
    described = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(whole, described)
    return whole.getvalue()


def archive(path, member, packing=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", packing) as opened:
        opened.writestr("a.npy", member)


def test_arrays_of_all_kinds_read_back(tmp_path):
    arrays = {
        "a": np.arange(6).reshape(2, 3),
        "b": np.array("text"),
        "c": np.asfortranarray(np.eye(3)),
        "d": np.zeros((0, 4), np.uint8),
    }
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", **arrays)
        found = read_arrays(tmp_path / "a.npz", dict.fromkeys(arrays, ""))
        assert all(np.array_equal(found[name], array) for name, array in arrays.items())
        assert [found[name].dtype for name in arrays] == [array.dtype for array in arrays.values()]


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (header((2**40,)), "Unable to allocate|EOF"),
        (header((2**40, 2**40)), "cannot reshape"),
        (header((-1,)), "negative dimensions"),
        (header((3,)) + b"1234", "a has more bytes than its header says"),
        (header((1,), "|O") + b"12345678", "Object arrays cannot be loaded"),
        (header((3,)).replace(b"'shape'", b"'shope'") + b"123", "Header does not contain"),
        (b"no array", "magic string"),
    ],
)
def test_a_header_that_lies_is_refused(tmp_path, member, message):
    archive(tmp_path / "a.npz", member)
    with pytest.raises(DataError, match=rf"a\.npz is damaged \(.*({message})"):
        read_arrays(tmp_path / "a.npz", {"a": ""})


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_packings_than_numpys_are_refused(tmp_path, packing):
    archive(tmp_path / "a.npz", header((3,)) + b"123", packing)
    with pytest.raises(DataError, match=r"packed by method \d+, neither stored nor deflated"):
        read_arrays(tmp_path / "a.npz", {"a": ""})


def test_a_member_that_says_it_is_larger_than_it_can_be_is_refused(tmp_path):
    archive(tmp_path / "a.npz", header((3,)) + b"123", zipfile.ZIP_DEFLATED)
    raw = bytearray((tmp_path / "a.npz").read_bytes())
    at = raw.index(b"PK\x01\x02") + 24
    raw[at : at + 4] = (2**31).to_bytes(4, "little")
    (tmp_path / "a.npz").write_bytes(raw)
    with pytest.raises(DataError, match=r"says that it is 2,147,483,648 bytes, which is imposs"):
        read_arrays(tmp_path / "a.npz", {"a": ""})


HUGE = (2**40).to_bytes(8, "little")
ARRAY = b"cnumpy.core.multiarray\n_reconstruct\n"


@pytest.mark.parametrize(
    "pickled",
    [
        b"\x80\x04\x8d" + HUGE + b"text.",  # a text of that length
        b"\x80\x04\x8e" + HUGE + b"bytes.",
        b"\x80\x05\x96" + HUGE + b"bytearray.",
        b"\x80\x04\x95" + HUGE + b"N.",  # a frame
        b"\x80\x02\x8b\xff\xff\xff\x7fnumber.",
        b"\x80\x02Nr\xff\xff\xff\x7f.",  # a memo of two thousand million objects
        b"Np99999999999\n.",
        ARRAY + b"(cnumpy\nndarray\n(L1099511627776L\ntS'b'\ntR.",
        b"cnumpy\nndarray\n((L1099511627776L\ntS'u1'\ntR.",  # the class, called
        b"(" * 5000,
        b"]" + b"]a" * 5000,
        b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x03\x00\x00\x00zipt\x52.",
    ],
    ids=lambda pickled: pickled[:24].hex(),
)
def test_a_pickle_that_asks_for_terabytes_is_refused(tmp_path, pickled):
    (tmp_path / "b").write_bytes(pickled)
    with pytest.raises(DataError, match="b is not a whole batch"):
        read_batch(tmp_path / "b", "labels")
