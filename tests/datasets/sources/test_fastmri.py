"""fastMRI brain: folders of HDF5 files in the official layout."""

import shutil

import h5py
import numpy as np
import pytest

from fedtables.datasets import catalogue
from fedtables.datasets.source import DataError
from fedtables.datasets.sources import fastmri
from fedtables.datasets.sources.fastmri import slices_of
from tests.datasets.promises import OF_FILES, promised

SOURCES = {entry.name: entry for entry in fastmri.SOURCES}
T1 = (
    ("multicoil_train", "file_brain_AXT1_201_6002725.h5"),
    ("multicoil_train", "file_brain_AXT1PRE_200_6002079.h5"),
    ("multicoil_train", "file_brain_AXT1POST_205_2050010.h5"),
    ("multicoil_train", "file_brain_AXT1_201_6002740.h5"),
    ("multicoil_val", "file_brain_AXT1POST_200_6002011.h5"),
    ("multicoil_val", "file_brain_AXT1_202_2020098.h5"),
    ("multicoil_val", "file_brain_AXT1_202_2020109.h5"),
    ("multicoil_val", "file_brain_AXT1PRE_210_2100025.h5"),
)
OTHERS = (
    ("multicoil_train", "file_brain_AXT2_200_2000019.h5"),
    ("multicoil_train", "file_brain_AXT2_205_2050175.h5"),
    ("multicoil_val", "file_brain_AXT2_200_2000020.h5"),
    ("multicoil_val", "file_brain_AXT2_209_6001420.h5"),
    ("multicoil_train", "file_brain_AXFLAIR_200_6002425.h5"),
    ("multicoil_test", "file_brain_AXT1_208_2080000.h5"),
)


def save(path, slices, name="reconstruction_rss"):
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as content:
        content["kspace"] = np.zeros((1, 2, 2, 2), np.complex64)
        content["ismrmrd_header"] = "<ismrmrdHeader/>"
        content[name] = slices
    return path


def tone(number):
    """What tells a file's slices apart."""
    return 10 * (1 + number)


def official(home):
    """Of each file two slices of 2 x 4 pixels, the second twice as bright, and one pixel of 1."""
    for number, (folder, name) in enumerate((*T1, *OTHERS)):
        slices = np.full((2, 2, 4), tone(number) / 255, np.float32)
        slices[0] /= 2
        slices[1, 0, 0] = 1
        save(home / "fastmri_brain" / folder / name, slices * 3e-4)
    return home / "fastmri_brain"


def test_a_sequence_is_read_from_both_folders_with_and_without_contrast(tmp_path):
    official(tmp_path)
    assert [path.name for path in SOURCES["fastmri-t1"].files(tmp_path)] == sorted(
        name for _, name in T1
    )
    assert [path.name for path in SOURCES["fastmri-t2"].files(tmp_path)] == sorted(
        name for _, name in OTHERS[:4]
    )


def test_a_quarter_of_the_subjects_is_tested_and_none_is_in_two_splits(tmp_path):
    official(tmp_path)
    splits = SOURCES["fastmri-t1"].load(tmp_path)
    assert {name: len(split) for name, split in splits.items()} == {"train": 12, "test": 4}
    assert splits["train"].groups.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert splits["test"].groups.tolist() == [6, 6, 7, 7]
    seconds = np.concatenate([split.images[1::2, 0, 128, 128] for split in splits.values()])
    assert sorted(seconds.tolist()) == [tone(number) for number in range(8)]
    assert {name: len(split) for name, split in SOURCES["fastmri-t2"].load(tmp_path).items()} == {
        "train": 6,
        "test": 2,
    }


def test_a_set_without_one_of_its_folders_is_refused(tmp_path):
    shutil.rmtree(official(tmp_path) / "multicoil_val")
    with pytest.raises(DataError, match=r"fastmri_brain lacks multicoil_val\. Complete it"):
        catalogue.resolve("fastmri-t1", home=tmp_path)


# -- damage --


def test_a_file_of_the_test_set_is_refused(tmp_path):
    folder, name = T1[0]
    save(official(tmp_path) / folder / name, np.ones((1, 2, 2)), name="mask")
    with pytest.raises(DataError, match=rf"{name} has no reconstruction_rss, as the files of the"):
        SOURCES["fastmri-t1"].load(tmp_path)


@pytest.mark.parametrize(
    ("slices", "message"),
    [
        (np.ones((2, 2), np.float32), r"float32 \(2, 2\)"),
        (np.ones((2, 2, 2), np.complex64), r"complex64 \(2, 2, 2\)"),
        (np.ones((2, 2, 2), np.int16), r"int16 \(2, 2, 2\)"),
        (np.ones((0, 2, 2), np.float32), r"float32 \(0, 2, 2\)"),
    ],
)
def test_a_reconstruction_of_another_kind_is_refused(tmp_path, slices, message):
    path = save(tmp_path / "file_brain_AXT1_1.h5", slices)
    with pytest.raises(DataError, match=rf"AXT1_1\.h5: reconstruction_rss is {message}\."):
        slices_of(path)


def test_a_flipped_byte_is_refused_in_one_line_or_changes_numbers_only(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as content:
        content["reconstruction_rss"] = np.ones((2, 3, 4), np.float32)
    raw = path.read_bytes()
    refused = []
    for position in range(0, len(raw), 37):
        path.write_bytes(raw[:position] + bytes([raw[position] ^ 0xFF]) + raw[position + 1 :])
        try:
            assert slices_of(path).ndim == 3
        except DataError as error:
            refused.append(str(error))
    assert len(refused) > 5
    assert not any("\n" in message for message in refused)


def test_sides_that_the_file_cannot_hold_are_refused_before_memory_is_taken(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as content:
        content.create_dataset(
            "reconstruction_rss", (2**20, 2**20, 2**10), np.float32, chunks=(1, 64, 64)
        )
    with pytest.raises(
        DataError, match=r"a\.h5 is not .*it says [\d,]+ bytes of slices, and has 0"
    ):
        slices_of(path)


test_what_every_reader_promises = promised(
    OF_FILES, [(entry, official) for entry in SOURCES.values()]
)
