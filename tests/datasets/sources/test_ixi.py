"""IXI: folders of the official archives, and the archive of one hospital."""

import numpy as np
import pytest

from fedtables.datasets import catalogue
from fedtables.datasets.source import DataError
from fedtables.datasets.sources import ixi
from fedtables.datasets.sources.ixi import slices_of, splits
from tests.datasets.promises import OF_FILES, promised
from tests.datasets.volumes import write_volume

SOURCES = {entry.name: entry for entry in ixi.SOURCES}
COUNT = 11
NAMES = [f"IXI{number:03}-{'Guys' if number % 2 else 'HH'}-0{number}" for number in range(2, 15)]
"""Two more than are taken."""


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(ixi, "SUBJECTS", {"t1": (6, 2, 3), "t2": (5, 2, 4)})


def official(home, names=NAMES, modality="T1", suffix=".nii.gz"):
    """Of each subject five slices of 2 x 4 pixels, of which the first is black and the others have
    a pixel of 255 and one of the subject's own tone.
    """
    for number, name in enumerate(names, 1):
        volume = np.zeros((5, 2, 4), np.int16)
        volume[1:, 0, 0] = 255
        volume[1:, 0, 1] = 10 * number
        write_volume(home / f"IXI-{modality}" / f"{name}-{modality}{suffix}", volume)
    return home


def tones(split):
    """Of each subject of a split of `official`."""
    return split.images[::4, 0, 127, 127].tolist()


# -- the whole set --


def test_names_are_split_in_the_order_of_their_hashes(monkeypatch):
    monkeypatch.setitem(ixi.SUBJECTS, "t1", (2, 1, 1))
    # SHA-256 of a begins with ca97, of b with 3e23, of c with 2e7d, of d with 18ac: d is tested, c
    # is left aside.
    assert splits(["a", "b", "c", "d"], "t1") == {"train": ["a", "b"], "test": ["d"]}


def test_slices_are_those_along_the_last_axis_without_the_black_ones(tmp_path):
    volume = np.zeros((4, 2, 3), np.int16)  # the last axis of a file is the first of an array
    volume[1], volume[3] = 7, [[0, 0, 0], [0, 0, 9]]
    slices = slices_of(write_volume(tmp_path / "a.nii.gz", volume))
    assert slices.tolist() == [[[7] * 3] * 2, [[0, 0, 0], [0, 0, 9]]]


@pytest.mark.parametrize("suffix", [".nii.gz", ".nii"])
def test_the_first_subjects_by_name_are_split_and_some_are_left_aside(tmp_path, suffix):
    official(tmp_path, suffix=suffix)
    assert [path.name for path in SOURCES["ixi-t1"].files(tmp_path)] == [
        f"{name}-T1{suffix}" for name in NAMES[:COUNT]
    ]
    parts = SOURCES["ixi-t1"].load(tmp_path)
    assert parts["train"].images.shape == (6 * 4, 1, 256, 256)
    assert parts["train"].groups.tolist() == [subject for subject in range(6) for _ in range(4)]
    assert parts["test"].groups.tolist() == [subject for subject in range(6, 9) for _ in range(4)]
    seen = [tones(split) for split in parts.values()]
    assert [len(set(of_split)) for of_split in seen] == [6, 3]
    assert len(set(seen[0]) | set(seen[1])) == 9
    assert set(seen[0] + seen[1]) <= {10 * number for number in range(1, COUNT + 1)}
    assert parts["test"].images[0, 0, 127, 126:130].tolist() == [255, seen[1][0], 0, 0]


def test_a_subject_that_is_there_twice_is_read_once(tmp_path):
    official(tmp_path)
    before = SOURCES["ixi-t1"].load(tmp_path)
    official(tmp_path, suffix=".nii")
    assert len(SOURCES["ixi-t1"].files(tmp_path)) == COUNT
    after = SOURCES["ixi-t1"].load(tmp_path)
    assert all(np.array_equal(before[name].images, after[name].images) for name in before)


def test_a_folder_half_there_is_refused_and_never_replaced(tmp_path):
    official(tmp_path, NAMES[:5])
    write_hh(tmp_path)
    with pytest.raises(
        DataError, match=r"IXI-T1 has 5 of 11 subjects\. Complete it, or take it aw"
    ):
        catalogue.resolve("ixi-t1", home=tmp_path)


# -- one hospital --


def arrays_hh(count=8):
    """Three slices of each subject, of ever brighter pixels; a tone for each subject."""
    slices = np.zeros((count, 3, 96, 80), np.uint8)
    slices += (np.arange(count, dtype=np.uint8) * 10)[:, None, None, None]
    slices += np.arange(1, 4, dtype=np.uint8)[None, :, None, None]
    return {"slices_t1": slices, "subject": np.array([f"IXI{n:03}-HH-1" for n in range(count)])}


def write_hh(home, **changes):
    home.mkdir(parents=True, exist_ok=True)
    np.savez(home / "ixi_hh.npz", **{**arrays_hh(), **changes})
    return home


def test_a_quarter_of_the_hospital_s_subjects_is_tested(tmp_path):
    parts = SOURCES["ixi-hh-t1"].load(write_hh(tmp_path))
    assert {name: len(split) for name, split in parts.items()} == {"train": 18, "test": 6}
    together = set()
    for split in parts.values():
        assert (np.diff(split.groups) >= 0).all()
        inside = split.images[:, 0, :, 8:88]
        assert inside[:, 50, 40].tolist() == [
            10 * group + place
            for group, place in zip(split.groups, [1, 2, 3] * len(split), strict=False)
        ]
        assert (inside == inside[:, :1, :1]).all()
        assert not split.images[:, 0, :, :8].any()
        assert not split.images[:, 0, :, 88:].any()
        together |= set(split.groups.tolist())
    assert together == set(range(8))
    assert set(parts["train"].groups).isdisjoint(parts["test"].groups)


# -- a damaged archive --


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"slices_t1": np.zeros((8, 96, 80), np.uint8)}, r"slices_t1 are uint8 \(8, 96, 80\)"),
        ({"slices_t1": np.zeros((8, 1, 96, 80))}, r"slices_t1 are float64 \(8, 1, 96, 80\)"),
        ({"slices_t1": np.zeros((8, 0, 96, 80), np.uint8)}, r"slices_t1 are uint8 \(8, 0, 96"),
        ({"subject": np.array(["a"] * 8)}, "has 8 volumes of 1 subjects"),
        ({"subject": np.array("a")}, "has 8 volumes of 1 subjects"),
        ({"subject": np.array([*"abcdefghh"])}, "has 8 volumes of 8 subjects"),
        ({"subject": np.array([None] * 8)}, "is damaged"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path, changes, message):
    with pytest.raises(DataError, match=rf"ixi_hh\.npz:? {message}"):
        SOURCES["ixi-hh-t1"].load(write_hh(tmp_path, **changes))


def test_a_subject_is_tested_in_both_modalities_or_in_none(tmp_path):
    for modality in ("T1", "T2"):
        official(tmp_path, NAMES[:11], modality)
    t1, t2 = (tones(SOURCES[f"ixi-{m}"].load(tmp_path)["test"]) for m in ("t1", "t2"))
    assert len(t1) == 3
    assert set(t1) < set(t2)  # 3 and 4 of the same eleven, which lie in the same order


test_what_every_reader_promises = promised(
    OF_FILES, [(SOURCES["ixi-t1"], official), (SOURCES["ixi-hh-t1"], write_hh)]
)


def test_the_papers_numbers(monkeypatch):
    monkeypatch.undo()
    assert [sum(parts) for parts in ixi.SUBJECTS.values()] == [581, 578]
    assert dict(SOURCES["ixi-t1"].sizes) == {"train": 65_400, "test": 13_500}
    assert dict(SOURCES["ixi-t2"].sizes) == {"train": 56_420, "test": 11_570}
    parts = splits([f"IXI{number}" for number in range(581)], "t1")
    assert {name: len(names) for name, names in parts.items()} == {"train": 436, "test": 90}
