"""Decoded samples in the cache: when a set is decoded again, and that it is the same from there."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from fedtables.datasets import decoded
from fedtables.datasets.decoded import splits_of
from fedtables.datasets.digests import splits_digest
from fedtables.datasets.source import FINDINGS, Annotation, Split
from fedtables.datasets.sources.digits import SOURCES
from fedtables.results.cached import entries, remove
from fedtables.results.files import cache_home, digest

NAMES = ("edema", "mass")
ENTRY = replace(SOURCES[0], annotations={"findings": Annotation(FINDINGS, 2, names=NAMES)})
KEY = digest("values")
READER = "fedtables.datasets.sources.digits"


@pytest.fixture
def counted(tmp_path, monkeypatch):
    """A source of three files that notes how often it is decoded; sets of three are kept."""
    monkeypatch.setattr(decoded, "MANY", 3)
    paths = [tmp_path / f"{number}.bin" for number in range(3)]
    for number, path in enumerate(paths):
        path.write_bytes(bytes([number, 7, 8, 9]))
    times = []

    def load(home):
        times.append(home)
        films = [np.frombuffer(path.read_bytes(), np.uint8) for path in paths]
        images, labels = np.stack(films).reshape(3, 1, 2, 2), np.array([0, 1, 1])
        findings = {"findings": np.array([[0, 1], [1, 0], [1, 1]], np.uint8)}
        train = Split(images, labels, findings, groups=np.array([4, 4, 5]))
        return {"train": train, "test": train.taken(np.array([2]))}

    return replace(ENTRY, files=lambda home: paths, load=load), times, paths


def cached(folder):
    return sorted((folder / "cache" / "decoded").glob("*.npy"))


def test_a_set_of_many_files_is_decoded_once_and_is_the_same_from_the_cache(counted, tmp_path):
    entry, times, _ = counted
    first, second = (splits_of(entry, READER, tmp_path) for _ in range(2))
    assert len(times) == 1
    assert isinstance(second["train"].images, np.memmap)
    direct = entry.load(tmp_path)
    assert splits_digest(entry, second) == splits_digest(entry, direct)
    assert splits_digest(entry, first) == splits_digest(entry, direct)


def test_writing_to_the_samples_changes_no_file(counted, tmp_path):
    entry, _, _ = counted
    splits_of(entry, READER, tmp_path)["train"].images[:] = 1
    again = splits_of(entry, READER, tmp_path)
    assert again["train"].images[:, 0, 0, 0].tolist() == [0, 1, 2]


def test_a_set_of_few_files_is_not_kept(counted, tmp_path, monkeypatch):
    monkeypatch.setattr(decoded, "MANY", 4)
    entry, times, _ = counted
    for _ in range(2):
        splits_of(entry, READER, tmp_path)
    assert len(times) == 2
    assert cached(tmp_path) == []


def test_other_files_are_decoded_again(counted, tmp_path):
    entry, times, paths = counted
    splits_of(entry, READER, tmp_path)
    paths[0].write_bytes(bytes([50, 7, 8, 9]))
    assert splits_of(entry, READER, tmp_path)["train"].images[0, 0, 0, 0] == 50
    assert len(times) == 2


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def other(path):
    np.save(path, np.zeros((1, 1, 2, 2), np.float32))


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), cut, other])
def test_what_is_damaged_is_decoded_again(counted, tmp_path, damage):
    entry, times, _ = counted
    splits_of(entry, READER, tmp_path)
    [images] = [path for path in cached(tmp_path) if path.name.endswith("train.images.npy")]
    damage(images)
    assert splits_of(entry, READER, tmp_path)["train"].images[:, 0, 0, 0].tolist() == [0, 1, 2]
    assert len(times) == 2
    splits_of(entry, READER, tmp_path)
    assert len(times) == 2


def test_where_the_disk_is_full_nothing_stays_and_the_samples_are_there(
    counted, tmp_path, monkeypatch
):
    entry, _, _ = counted

    def full(path, array):
        path.write_bytes(b"the first bytes")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(decoded.np, "save", full)
    assert splits_of(entry, READER, tmp_path)["train"].labels.tolist() == [0, 1, 1]
    assert cached(tmp_path) == []


def test_without_a_cache_it_is_decoded_each_time(counted, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FEDTABLES_CACHE", str(tmp_path / "file"))
    entry, times, _ = counted
    for _ in range(2):
        assert splits_of(entry, READER, tmp_path)["test"].labels.tolist() == [1]
    assert len(times) == 2


def test_the_cache_counts_its_files_and_removes_them(counted, tmp_path):
    entry, _, _ = counted
    splits_of(entry, READER, tmp_path)
    [kept] = entries(tmp_path / "cache", "decoded")
    assert set(kept.files[1:]) == set(cached(tmp_path))
    assert len(kept.files) == 1 + 2 * 4  # images, labels, findings and groups of both splits
    remove(kept)
    assert cached(tmp_path) == []


# -- values that are made of samples --


@pytest.fixture
def filled(monkeypatch):
    """Fills with 0, 1, 2, ..., and notes how often; values of 16 bytes are large."""
    monkeypatch.setattr(decoded, "LARGE", 16)
    times = []

    def fill(values):
        times.append(values.shape)
        values[:] = np.arange(values.size).reshape(values.shape)

    return fill, times


def test_large_values_are_made_once_and_small_ones_each_time(filled):
    fill, times = filled
    large = [decoded.values_of(KEY, (2, 2), fill) for _ in range(2)]
    small = [decoded.values_of(KEY, (3,), fill) for _ in range(2)]
    assert [values.tolist() for values in large] == 2 * [[[0.0, 1.0], [2.0, 3.0]]]
    assert [isinstance(values, np.memmap) for values in (*large, *small)] == [
        True,
        True,
        False,
        False,
    ]
    large[0][:] = 9
    assert decoded.values_of(KEY, (2, 2), fill)[1, 1] == 3.0
    assert times == [(2, 2), (3,), (3,)]
    [kept] = entries(cache_home(), "decoded")
    assert [file.suffix for file in kept.files] == [".json", ".npy"]


def test_values_whose_file_is_gone_are_made_again(filled):
    fill, times = filled
    decoded.values_of(KEY, (4,), fill)
    (cache_home() / "decoded" / f"{KEY}.values.npy").unlink()
    again = decoded.values_of(KEY, (4,), fill)
    assert (len(times), isinstance(again, np.memmap)) == (2, True)


def test_where_there_is_no_room_values_are_in_memory(filled, monkeypatch):
    fill, _ = filled
    full = SimpleNamespace(free=0)
    monkeypatch.setattr(decoded.shutil, "disk_usage", lambda folder: full)
    values = decoded.values_of(KEY, (4,), fill)
    assert (values.tolist(), isinstance(values, np.memmap)) == ([0.0, 1.0, 2.0, 3.0], False)


def test_large_room_is_a_file_without_a_name_and_else_memory(filled, monkeypatch):
    for shape, mapped in (((2, 2), True), ((3,), False)):
        room = decoded.scratch(shape)
        room[:] = 7
        assert (isinstance(room, np.memmap), room.shape, room.dtype) == (mapped, shape, np.float32)
    assert [path for path in cache_home().rglob("*") if path.is_file()] == []
    monkeypatch.setattr(decoded.shutil, "disk_usage", lambda folder: SimpleNamespace(free=0))
    assert not isinstance(decoded.scratch((2, 2)), np.memmap)


def test_a_file_that_a_killed_process_left_half_filled_counts_for_nothing(filled):
    fill, _ = filled

    def killed(values):
        values[0] = 7
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        decoded.values_of(KEY, (4,), killed)
    assert decoded.values_of(KEY, (4,), fill).tolist() == [0.0, 1.0, 2.0, 3.0]
