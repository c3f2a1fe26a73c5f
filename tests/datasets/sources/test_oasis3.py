"""OASIS-3: sessions in BIDS form, turned upright."""

import numpy as np
import pytest

from fedtables.datasets.source import DataError
from fedtables.datasets.sources import oasis3
from fedtables.datasets.sources.oasis3 import slices_of
from tests.datasets.promises import OF_FILES, promised
from tests.datasets.volumes import write_volume

SOURCES = {entry.name: entry for entry in oasis3.SOURCES}
SESSIONS = (
    ("OAS30001", "d0129"),
    ("OAS30001", "d0757"),
    ("OAS30002", "d0653"),
    ("OAS30003", "d0001"),
    ("OAS30003", "d3731"),
)
VOLUME = np.arange(1, 5 * 3 * 2 + 1, dtype=np.int16).reshape(5, 3, 2)  # z up, y to the front, x


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(oasis3, "SLICES", 3)


def path_of(home, subject, session, modality="T1w"):
    name = f"sub-{subject}_ses-{session}_{modality}.nii.gz"
    return home / "OASIS3" / f"sub-{subject}" / f"ses-{session}" / "anat" / name


def official(home):
    """Sessions of one brightest pixel and of a tone of their own, 10 more in each; T2 of three."""
    for number, (subject, session) in enumerate(SESSIONS):
        volume = np.full((5, 3, 2), 10 * (1 + number), np.int16)
        volume[2, 0, 0] = 255
        write_volume(path_of(home, subject, session), volume)
        if number > 1:
            write_volume(path_of(home, subject, session, "T2w"), volume)
    return home


# -- slices --


def test_the_middle_axial_slices_have_the_front_at_the_top(tmp_path):
    slices = slices_of(write_volume(tmp_path / "a.nii", VOLUME))
    assert slices.tolist() == [
        [[11, 12], [9, 10], [7, 8]],
        [[17, 18], [15, 16], [13, 14]],
        [[23, 24], [21, 22], [19, 20]],
    ]


@pytest.mark.parametrize(
    ("volume", "directions"),
    [
        # x and y the other way round, as DICOM has them
        (VOLUME[:, ::-1, ::-1], [[-1, 0, 0], [0, -1, 0], [0, 0, 1]]),
        # measured sagittally: first to the front, then up, then to the right
        (VOLUME.transpose(2, 0, 1), [[0, 0, 1], [1, 0, 0], [0, 1, 0]]),
        # the same, tilted by a tenth
        (VOLUME.transpose(2, 0, 1), [[0, 0, 1], [1, 0.1, 0], [-0.1, 1, 0]]),
    ],
)
def test_however_a_head_was_measured_its_slices_are_the_same(tmp_path, volume, directions):
    affine = np.eye(4)
    affine[:3, :3] = directions
    upright = slices_of(write_volume(tmp_path / "upright.nii", VOLUME))
    assert np.array_equal(slices_of(write_volume(tmp_path / "other.nii", volume, affine)), upright)


# -- splits --


def test_every_session_is_read_and_the_last_subject_is_tested(tmp_path):
    splits = SOURCES["oasis3-t1"].load(official(tmp_path))
    tones = {name: split.images[:, 0, 128, 128].tolist() for name, split in splits.items()}
    assert tones == {
        "train": [10, 10, 10, 20, 20, 20, 30, 30, 30],
        "test": [40, 40, 40, 50, 50, 50],  # both sessions of one subject
    }
    assert splits["train"].groups.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert splits["test"].groups.tolist() == [3, 3, 3, 4, 4, 4]


def test_a_sequence_is_read_alone_and_at_any_depth(tmp_path):
    official(tmp_path)
    moved = tmp_path / "OASIS3" / "a" / "batch" / "of" / "sessions"
    moved.mkdir(parents=True)
    (tmp_path / "OASIS3" / "sub-OAS30002").rename(moved / "sub-OAS30002")
    assert [len(SOURCES[name].files(tmp_path)) for name in SOURCES] == [5, 3]
    splits = SOURCES["oasis3-t2"].load(tmp_path)
    assert {name: len(split) for name, split in splits.items()} == {"train": 3, "test": 6}


def test_a_session_that_is_there_twice_is_read_once(tmp_path):
    path = path_of(official(tmp_path), *SESSIONS[0])
    write_volume(path.with_suffix(""), VOLUME)
    assert path.with_suffix("").name.endswith("_T1w.nii")
    assert len(SOURCES["oasis3-t1"].files(tmp_path)) == 5


# -- damage --


def test_a_volume_without_directions_is_refused(tmp_path):
    path = write_volume(tmp_path / "a.nii", VOLUME)
    content = bytearray(path.read_bytes())
    content[280:328] = bytes(48)  # the three rows of the affine
    path.write_bytes(content)
    with pytest.raises(
        DataError, match=r"a\.nii is not a readable .*an axis of it has no direction"
    ):
        slices_of(path)


test_what_every_reader_promises = promised(
    OF_FILES, [(entry, official) for entry in SOURCES.values()]
)
