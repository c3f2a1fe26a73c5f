"""What every data set shares: splits that are checked, and npz archives that are whole or
refused.
"""

import numpy as np
import pytest

from fedtables.datasets.npz import check_npz
from fedtables.datasets.source import KERAS, DataError, Split, read_npz, to_nchw, whole_numbers


def arrays(side=4, channels=None):
    shape = (side, side) if channels is None else (side, side, channels)
    count = side**2 * (channels or 1)
    return {
        "x_train": np.arange(3 * count, dtype=np.uint8).reshape(3, *shape),
        "y_train": np.array([[2], [0], [1]], np.uint8),
        "x_test": np.full((2, *shape), 7, np.uint8),
        "y_test": np.array([5, 6], np.int32),
    }


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("shape", [(2, 1, 4, 4), (2, 3, 4, 6), (2, 1, 3, 4, 5)])
def test_samples_are_images_and_volumes_of_any_sides(shape, dtype):
    split = Split(np.zeros(shape, dtype), np.zeros(2, np.int64), groups=np.array([9, 9]))
    assert len(split) == 2
    assert split.groups is not None


@pytest.mark.parametrize(
    ("images", "labels"),
    [
        (np.zeros((2, 1, 4, 4), np.float64), np.zeros(2, int)),
        (np.zeros((2, 1, 4, 4), np.int16), np.zeros(2, int)),
        (np.zeros((2, 4, 4), np.uint8), np.zeros(2, int)),
        (np.zeros((2, 1, 1, 3, 4, 5), np.float32), np.zeros(2, int)),
        (np.zeros((2, 1, 4, 4), np.uint8), np.zeros(3, int)),
        (np.zeros((2, 1, 4, 4), np.uint8), np.zeros((2, 1), int)),
        (np.zeros((2, 1, 4, 4), np.uint8), np.zeros(2)),
    ],
)
def test_a_split_of_other_types_or_sizes_is_refused(images, labels):
    with pytest.raises(DataError, match=r"^expected uint8 or float32 images .*, got [^\n]*$"):
        Split(images, labels)


@pytest.mark.parametrize("groups", [np.array([1]), np.array([1, 2], np.int32), np.array([[1, 2]])])
def test_groups_of_other_type_or_number_are_refused(groups):
    with pytest.raises(DataError, match=r"^expected groups int64 \(2,\), got [^\n]*$"):
        Split(np.zeros((2, 1, 4, 4), np.uint8), np.zeros(2, int), groups=groups)


def test_colours_move_before_height_and_width():
    image = np.arange(12).reshape(1, 2, 2, 3)
    assert to_nchw(image)[0, 1].tolist() == [[1, 4], [7, 10]]
    assert to_nchw(image).flags["C_CONTIGUOUS"]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_npz_in_the_layout_of_keras_is_read(tmp_path, save):
    save(tmp_path / "a.npz", **arrays())
    splits = read_npz(tmp_path / "a.npz")
    assert splits["train"].images.shape == (3, 1, 4, 4)
    assert splits["train"].images[1, 0, 0].tolist() == [16, 17, 18, 19]
    assert splits["train"].labels.tolist() == [2, 0, 1]
    assert splits["test"].labels.dtype == np.int64


def test_a_truncated_npz_is_refused_with_advice(tmp_path):
    np.savez(tmp_path / "a.npz", **arrays())
    raw = (tmp_path / "a.npz").read_bytes()
    for length in range(0, len(raw), 97):
        (tmp_path / "a.npz").write_bytes(raw[:length])
        with pytest.raises(
            DataError, match=r"damaged or truncated .* Delete it and get it again\."
        ):
            check_npz(tmp_path / "a.npz", KERAS)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_npz_with_a_flipped_byte_is_refused_or_reads_the_same(tmp_path, save):
    path = tmp_path / "a.npz"
    save(path, **arrays())
    raw = path.read_bytes()
    refused = 0
    for position in range(0, len(raw), 3):
        path.write_bytes(raw[:position] + bytes([raw[position] ^ 0xFF]) + raw[position + 1 :])
        try:
            splits = read_npz(path)
        except DataError:
            refused += 1
        else:
            assert splits["train"].images.ravel().tolist() == list(range(48))
            assert splits["train"].labels.tolist() == [2, 0, 1]
    assert refused > len(raw) // 6


def test_an_npz_without_labels_is_refused_naming_them(tmp_path):
    np.savez(tmp_path / "a.npz", x_train=np.zeros(1), x_test=np.zeros(1))
    with pytest.raises(DataError, match=r"lacks the arrays y_train, y_test\."):
        check_npz(tmp_path / "a.npz", KERAS)


class Touch:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


def test_an_npz_with_pickled_code_is_refused_and_the_code_not_run(tmp_path):
    np.savez(
        tmp_path / "a.npz",
        **{**arrays(), "y_train": np.array([Touch(str(tmp_path / "executed"))], dtype=object)},
    )
    with pytest.raises(DataError, match="damaged"):
        read_npz(tmp_path / "a.npz")
    assert not (tmp_path / "executed").exists()


# -- whole numbers --


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "u8", "i8", "f2", "f4", "f8"])
def test_whole_numbers_are_those_that_a_cast_keeps(dtype):
    found = whole_numbers(np.array([[0, 1]], dtype), "a.nii")
    assert (found.dtype, found.tolist()) == (np.int64, [[0, 1]])
    assert whole_numbers(np.empty(0, dtype), "a.nii").tolist() == []


@pytest.mark.parametrize(
    "values",
    [
        [0.5],
        [1, np.nan],
        [np.inf],
        [-np.inf],
        [1e30],
        [-1e30],
        np.array([np.inf], np.float16),
        np.array([2**63], np.uint64),
        np.array([-(2**63)]),
        [1 + 0j],
        ["3"],
        [b"3"],
        np.array(["2020-01-01"], "datetime64[D]"),
        np.array([1], object),
    ],
)
def test_what_a_cast_would_change_is_no_whole_number(values):
    with pytest.raises(
        DataError, match=r"^a\.nii has values .*not whole numbers.* Get it again\.$"
    ):
        whole_numbers(np.asarray(values), "a.nii")


@pytest.mark.parametrize("labels", [[1.5, 0], ["1", "0"], [1j, 0], [np.inf, 0]])
def test_labels_of_an_archive_are_whole_numbers(tmp_path, labels):
    images = np.zeros((2, 4, 4), np.uint8)
    np.savez(tmp_path / "a.npz", x_train=images, y_train=labels, x_test=images, y_test=[0, 1])
    with pytest.raises(DataError, match=r"a\.npz: y_train has values .*not whole numbers"):
        read_npz(tmp_path / "a.npz")
