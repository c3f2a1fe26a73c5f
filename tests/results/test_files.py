"""Files: written whole or not at all, and sealed against damage."""

import hashlib
from pathlib import Path

import pytest

from fedtables.results.files import (
    ResultsError,
    cache_home,
    check_name,
    data_home,
    digest,
    file_digest,
    read_sealed_json,
    write_atomic,
    write_sealed_json,
)


def test_digest_of_a_value_is_that_of_its_canonical_json():
    assert digest({"b": 1, "a": 2}) == hashlib.sha256(b'{"a":2,"b":1}').hexdigest()


def test_file_digest_is_the_digest_of_its_bytes(tmp_path):
    (tmp_path / "f").write_bytes(b"\x00\x01" * 100_000)
    assert file_digest(tmp_path / "f") == digest(b"\x00\x01" * 100_000)


def test_write_atomic_creates_folders_and_writes_text_and_bytes(tmp_path):
    write_atomic(tmp_path / "a" / "b" / "text", "ä\n")
    write_atomic(tmp_path / "a" / "bytes", b"\xff")
    assert (tmp_path / "a" / "b" / "text").read_bytes() == b"\xc3\xa4\n"
    assert (tmp_path / "a" / "bytes").read_bytes() == b"\xff"


def test_write_atomic_replaces_the_old_file_and_leaves_no_other(tmp_path):
    write_atomic(tmp_path / "f", "old, and much longer")
    write_atomic(tmp_path / "f", "new")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("f", "new")]


def test_a_write_that_fails_leaves_the_old_file_and_no_leftovers(tmp_path, monkeypatch):
    target = tmp_path / "f"
    write_atomic(target, "old")

    def full_disk(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(ResultsError, match=r"No space left on device.*Free some space") as caught:
        write_atomic(target, "new")
    assert str(target) in str(caught.value)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("f", "old")]


def test_writing_onto_a_directory_is_refused_with_advice(tmp_path):
    (tmp_path / "f").mkdir()
    with pytest.raises(ResultsError, match=r"[Cc]hoose another folder"):
        write_atomic(tmp_path / "f", "new")
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize(
    "value", [{}, {"a": 1.5, "b": [None, True, "ü"]}, {"z": {"y": {"x": 0.1}}}]
)
def test_sealed_json_reads_back_what_was_written(tmp_path, value):
    write_sealed_json(tmp_path / "f", value)
    assert read_sealed_json(tmp_path / "f") == value


def test_sealed_json_detects_every_single_flipped_bit(tmp_path):
    value = {"accuracy": 0.5, "row": "a"}
    write_sealed_json(tmp_path / "f", value)
    raw = (tmp_path / "f").read_bytes().rstrip(b"\n")
    for position in range(len(raw)):
        (tmp_path / "f").write_bytes(
            raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1 :]
        )
        assert read_sealed_json(tmp_path / "f") is None, position


@pytest.mark.parametrize("other", ["[]", "3", '"text"', "{}", '{"value": {}}'])
def test_json_that_was_never_sealed_counts_as_damaged(tmp_path, other):
    (tmp_path / "f").write_text(other)
    assert read_sealed_json(tmp_path / "f") is None


@pytest.mark.parametrize("value", ["", None])
def test_an_empty_variable_is_none(monkeypatch, value):
    monkeypatch.setenv("HOME", "/home/somebody")
    for name, home in (("FEDTABLES_CACHE", cache_home), ("FEDTABLES_DATA", data_home)):
        monkeypatch.delenv(name) if value is None else monkeypatch.setenv(name, value)
        assert home().is_relative_to("/home/somebody/.cache/fedtables")


def test_the_home_of_nobody_is_no_folder(monkeypatch):
    monkeypatch.setenv("FEDTABLES_CACHE", "~nosuchuser/cache")
    with pytest.raises(ResultsError, match="FEDTABLES_CACHE=~nosuchuser/cache"):
        cache_home()


@pytest.mark.parametrize("name", ["a\0b", "\udcff"])
def test_a_path_that_no_file_can_have_is_refused(name):
    with pytest.raises(ValueError, match="name"):
        check_name(Path(name))
