"""Slices at one size and on one scale, split by subject."""

from pathlib import Path

import numpy as np
import pytest

from datasets.annotations import annotations_of
from datasets.mri import SIDE, as_bytes, fitted, slices_source, splits_of
from datasets.source import REAL, DataError, check_groups

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


def test_what_fits_stays_as_it_is_and_the_size_is_the_papers():
    assert np.array_equal(fitted(SLICE[:, :, :2], 2), SLICE[:, :, :2])
    assert SIDE == 256
    padded = fitted(np.ones((2, 240, 320), np.uint8))
    assert padded.shape == (2, 256, 256)
    assert padded.dtype == np.uint8
    assert [padded[:, row].any() for row in (7, 8, 247, 248)] == [False, True, True, False]


# -- scale --


@pytest.mark.parametrize("kind", ["i2", "u2", "f4", "f8", ">i2"])
def test_the_greatest_value_is_255_and_what_is_below_0_is_black(kind):
    volume = np.array([[-3, 0, 1], [5, 9, 10]]).clip(0 if kind == "u2" else -3).astype(kind)
    scaled = as_bytes(volume)
    assert scaled.dtype == np.uint8
    assert scaled.tolist() == [[0, 0, 26], [128, 230, 255]]  # 25.5, 127.5 and 229.5 go to even


def test_values_on_the_scale_are_not_changed():
    assert as_bytes(np.arange(256)).tolist() == [*range(256)]
    assert as_bytes(np.arange(256) / 1000).tolist() == [*range(256)]


def test_a_volume_without_any_signal_is_black():
    assert not as_bytes(np.zeros((1, 2, 3), np.int16)).any()
    assert not as_bytes(np.full((1, 2, 3), -1.5)).any()


def test_no_slice_at_all_is_none_on_the_scale():
    assert as_bytes(np.zeros((0, 2, 3), np.int16)).shape == (0, 2, 3)


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


def test_many_subjects_stay_in_their_order():
    paths = [Path(str(1 + number % 3)) for number in range(20)]
    groups = splits_of({"train": paths}, read)["train"].groups
    assert np.bincount(groups).tolist() == [int(path.name) for path in paths]
    assert (np.diff(groups) >= 0).all()


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


# -- sources --


def test_a_source_of_slices_has_one_class_and_nothing_beside_the_image():
    made = slices_source(
        "made",
        "made slices",
        {"train": 2, "test": 1},
        lambda home: [],
        lambda home: {},
        licence="none",
        how_to_get="Make it.",
        stand_ins=("surrogate", "generated"),
    )
    assert (made.classes, made.shape, made.dtype, made.kind) == (1, (1, 256, 256), "uint8", REAL)
    assert made.embedded == "generated"
    assert made.about
    assert {*annotations_of(made)} == {"class", "image"}
    alone = slices_source(
        "a", "a", {}, lambda home: [], lambda home: {}, licence="", how_to_get="", side=32
    )
    assert (alone.stand_ins, alone.embedded, alone.shape) == ((), "", (1, 32, 32))


def test_a_value_far_beyond_the_others_is_refused_rather_than_all_black(tmp_path):
    volume = np.full((2, 30, 30), 100.0, np.float32)
    volume[0, 0, 0] = 1e30
    with pytest.raises(DataError, match=r"a has values up to 1e\+30, .* 1,799 of 1,800 turn black"):
        splits_of({"train": [tmp_path / "a"]}, lambda path: volume)
    volume[0, 0, 0] = 10_000  # a vessel
    (split,) = splits_of({"train": [tmp_path / "a"]}, lambda path: volume).values()
    assert np.unique(split.images).tolist() == [0, 3, 255]
