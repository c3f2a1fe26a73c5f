"""Digests of data: what they follow, and when the data are decoded for one."""

from dataclasses import replace

import numpy as np
import pytest

from fedtables.datasets import digests
from fedtables.datasets.digests import data_digest, splits_digest
from fedtables.datasets.source import FINDINGS, Annotation, Split
from fedtables.datasets.sources.digits import SOURCES

ENTRY = SOURCES[0]
READER = "fedtables.datasets.sources.digits"
IMAGES = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 1, 3, 4)


def split(**changes):
    return Split(
        **{
            "images": IMAGES,
            "labels": np.array([0, 1]),
            "annotations": {"findings": np.array([[0, 1], [1, 0]], np.uint8)},
            "groups": np.array([5, 6]),
            **changes,
        }
    )


def test_samples_targets_and_groups_count_but_not_the_order_in_memory():
    base = splits_digest(ENTRY, {"train": split()})
    same = split(images=np.asfortranarray(IMAGES), labels=np.array([0, 1]).astype(">i8"))
    assert splits_digest(ENTRY, {"train": same}) == base
    others = [
        {"test": split()},
        {"train": split(), "test": split()},
        {"train": split(images=IMAGES + 1)},
        {"train": split(images=IMAGES.reshape(2, 1, 4, 3))},
        {"train": split(labels=np.array([1, 0]))},
        {"train": split(annotations={})},
        {"train": split(annotations={"findings": np.zeros((2, 2), np.uint8)})},
        {"train": split(groups=np.array([5, 5]))},
        {"train": split(groups=None)},
        {"train": Split(IMAGES, np.array([0, 1]))},
    ]
    assert base not in {splits_digest(ENTRY, other) for other in others}


def test_what_the_columns_of_findings_stand_for_counts():
    def named(*names):
        entry = replace(ENTRY, annotations={"findings": Annotation(FINDINGS, 2, names=names)})
        return splits_digest(entry, {"train": split()})

    assert named("edema", "mass") == named("edema", "mass") != named("mass", "edema")


@pytest.fixture
def counted(tmp_path, monkeypatch):
    """A source of one file that notes how often it is decoded, in a process that knows nothing."""
    path = tmp_path / "samples.bin"
    path.write_bytes(IMAGES.tobytes())
    times = []

    def load(home):
        times.append(home)
        images = np.frombuffer(path.read_bytes(), np.uint8).reshape(IMAGES.shape)
        return {"train": Split(images, np.array([0, 1]))}

    return replace(ENTRY, files=lambda home: [path], load=load), times, path


def test_the_digest_is_kept_in_the_cache_until_files_or_reader_change(
    counted, tmp_path, monkeypatch
):
    entry, times, path = counted
    first = data_digest(entry, READER, tmp_path, lambda: entry.load(tmp_path))

    def again():
        return data_digest(entry, READER, tmp_path, lambda: entry.load(tmp_path))

    assert again() == first
    assert len(times) == 1
    monkeypatch.setattr(digests, "code_digest", lambda module: "a touched reader")
    assert again() == first
    assert len(times) == 2
    path.write_bytes((IMAGES + 1).tobytes())
    assert again() != first
    assert len(times) == 3


def test_a_damaged_note_in_the_cache_is_made_anew(counted, tmp_path):
    entry, times, _ = counted
    first = data_digest(entry, READER, tmp_path, lambda: entry.load(tmp_path))
    for note in (tmp_path / "cache" / "data").iterdir():
        note.write_text(note.read_text().replace(first, "0" * 64))
    assert data_digest(entry, READER, tmp_path, lambda: entry.load(tmp_path)) == first
    assert len(times) == 2


def test_a_cache_that_cannot_be_written_costs_no_more_than_time(counted, tmp_path, monkeypatch):
    entry, times, _ = counted
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FEDTABLES_CACHE", str(tmp_path / "file"))
    assert data_digest(entry, READER, tmp_path, lambda: entry.load(tmp_path))
    assert len(times) == 1
