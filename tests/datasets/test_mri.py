"""Slices at one size and on one scale, split by subject."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from fedtables.datasets.catalogue import check_groups
from fedtables.datasets.mri import SIDE, as_bytes, fitted, read_volume, splits_of
from fedtables.datasets.source import DataError

SLICE = np.array([[[1, 2, 3], [4, 5, 6]]], np.uint8)  # 1 x 2 x 3


# -- size --


def test_what_is_too_small_is_padded_with_black_around_its_middle():
    assert fitted(SLICE, 4).tolist() == [[[0] * 4, [1, 2, 3, 0], [4, 5, 6, 0], [0] * 4]]
    assert fitted(SLICE, 5).tolist() == [
        [[0] * 5, [0, 1, 2, 3, 0], [0, 4, 5, 6, 0], [0] * 5, [0] * 5]
    ]


def test_what_is_too_large_is_cropped_around_its_middle():
    ramp = np.arange(5 * 6, dtype=np.uint8).reshape(1, 5, 6)
    assert fitted(ramp, 2).tolist() == [[[8, 9], [14, 15]]]  # rows 1 and 2, columns 2 and 3
    assert fitted(ramp, 3).tolist() == [[[7, 8, 9], [13, 14, 15], [19, 20, 21]]]


def test_one_axis_is_cropped_and_the_other_padded():
    assert fitted(SLICE, 1).tolist() == [[[2]]]
    tall = np.arange(1, 6, dtype=np.uint8).reshape(1, 5, 1)
    assert fitted(tall, 3).tolist() == [[[0, 2, 0], [0, 3, 0], [0, 4, 0]]]


# -- scale --


@pytest.mark.parametrize("kind", ["i2", "u2", "f4", "f8", ">i2"])
def test_the_greatest_value_is_255_and_what_is_below_0_is_black(kind):
    volume = np.array([[-3, 0, 1], [5, 9, 10]]).clip(0 if kind == "u2" else -3).astype(kind)
    scaled = as_bytes(volume)
    assert scaled.dtype == np.uint8
    assert scaled.tolist() == [[0, 0, 26], [128, 230, 255]]  # 25.5, 127.5 and 229.5 go to even


def test_the_scale_is_the_volume_s_and_not_the_slice_s():
    slices = as_bytes(np.stack([np.full((2, 2), 10), np.full((2, 2), 20)]))
    assert slices[:, 0, 0].tolist() == [128, 255]


# -- splits --


def read(path):
    """As many slices as the name says, of ever brighter pixels."""
    return np.arange(1, int(path.name) + 1)[:, None, None] * np.ones((1, 2, 2), int)


def test_a_group_is_a_subject_counted_through():
    splits = splits_of({"train": [Path("2"), Path("3")], "test": [Path("1"), Path("2")]}, read)
    assert splits["train"].groups.tolist() == [0, 0, 1, 1, 1]
    assert splits["test"].groups.tolist() == [2, 3, 3]
    check_groups("slices", splits)
    assert {name: split.images.shape for name, split in splits.items()} == {
        "train": (5, 1, SIDE, SIDE),
        "test": (3, 1, SIDE, SIDE),
    }
    assert splits["train"].images[:, 0, 127, 127].tolist() == [128, 255, 85, 170, 255]
    assert splits["train"].images[0, 0].astype(int).sum() == 4 * 128
    assert not splits["train"].labels.any()


def test_a_split_without_a_slice_is_refused():
    with pytest.raises(DataError, match="there is no slice in the split 'test'"):
        splits_of({"train": [Path("1")], "test": []}, read)


def test_a_file_without_a_slice_is_a_subject_of_none():
    split = splits_of({"train": [Path("1"), Path("0"), Path("2")]}, read)["train"]
    assert split.groups.tolist() == [0, 2, 2]
    with pytest.raises(DataError, match="there is no slice in the split 'train'"):
        splits_of({"train": [Path("0")]}, read)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_no_numbers_are_refused_naming_the_file(value):
    with pytest.raises(DataError, match=r"a/1 has values that are no numbers"):
        splits_of({"train": [Path("a/1")]}, lambda path: np.array([[[1, value]]]))


def test_a_value_far_beyond_the_others_is_refused_rather_than_all_black(tmp_path):
    volume = np.full((2, 30, 30), 100.0, np.float32)
    volume[0, 0, 0] = 1e30
    with pytest.raises(DataError, match=r"a has values up to 1e\+30, .* 1,799 of 1,800 turn black"):
        splits_of({"train": [tmp_path / "a"]}, lambda path: volume)
    volume[0, 0, 0] = 10_000  # a vessel
    (split,) = splits_of({"train": [tmp_path / "a"]}, lambda path: volume).values()
    assert np.unique(split.images).tolist() == [0, 3, 255]


# -- files --

TYPES = {"u1": 2, "i2": 4, "i4": 8, "f4": 16, "f8": 64, "i1": 256, "u2": 512, "u4": 768}
VOLUME = np.arange(2 * 3 * 4).reshape(2, 3, 4)  # z, y, x


def nifti(volume, kind="i2", order="<", slope=1.0, intercept=0.0, sides=None):
    """The bytes of a file; x varies fastest in it."""
    sides = volume.shape[::-1] if sides is None else sides
    header = bytearray(352)
    struct.pack_into(f"{order}i", header, 0, 348)
    struct.pack_into(f"{order}8h", header, 40, len(sides), *sides, *[1] * (7 - len(sides)))
    struct.pack_into(f"{order}2h", header, 70, TYPES[kind], 8 * np.dtype(kind).itemsize)
    struct.pack_into(f"{order}3f", header, 108, 352.0, slope, intercept)
    header[344:348] = b"n+1\0"
    return bytes(header) + volume.astype(f"{order}{kind}").tobytes()


@pytest.fixture
def saved(tmp_path):
    def save(content, name="a.nii.gz"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return save


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("order", "<>")
def test_a_volume_is_read_in_its_own_type(saved, kind, order):
    volume = read_volume(saved(nifti(VOLUME, kind, order)))
    assert volume.dtype == np.dtype(kind)
    assert np.array_equal(volume, VOLUME)


def test_a_slope_and_an_intercept_are_applied(saved):
    volume = read_volume(saved(nifti(VOLUME, slope=0.5, intercept=-1.0)))
    assert np.array_equal(volume, 0.5 * VOLUME - 1)
    for slope in (0.0, float("nan")):  # says that there is none
        volume = read_volume(saved(nifti(VOLUME, slope=slope, intercept=-1.0)))
        assert np.array_equal(volume, VOLUME)


def test_sides_of_one_after_the_third_are_dropped(saved):
    assert read_volume(saved(nifti(VOLUME, sides=(4, 3, 2, 1)))).shape == (2, 3, 4)
    with pytest.raises(DataError, match="its sides are 4 x 3 x 1 x 2"):
        read_volume(saved(nifti(VOLUME, sides=(4, 3, 1, 2))))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ""),
        (nifti(VOLUME)[:-1], ""),
        (b"\0" * 400, ""),
        (nifti(VOLUME, sides=(4, 6)), "its sides are 4 x 6"),
        (nifti(VOLUME, sides=(4, -3, 2)), ""),
        (nifti(VOLUME)[:70] + b"\x20\0" + nifti(VOLUME)[72:], ""),
        (nifti(VOLUME)[:70] + b"\xff\x0f" + nifti(VOLUME)[72:], ""),
    ],
)
def test_what_is_no_whole_volume_is_refused(saved, content, message):
    with pytest.raises(DataError, match=rf"a\.nii\.gz is not a readable NIfTI .*{message}"):
        read_volume(saved(content))


@pytest.mark.parametrize("name", ["a.nii", "a.nii.gz"])
@pytest.mark.parametrize("kind", ["u1", "f8"])
def test_sides_that_the_file_cannot_hold_are_refused_before_memory_is_taken(saved, name, kind):
    path = saved(nifti(VOLUME, kind, sides=(32_000, 32_000, 32_000)), name)
    with pytest.raises(
        DataError, match=rf"{name} is not .*it says [\d,]+ bytes of voxels, and has"
    ):
        read_volume(path)
