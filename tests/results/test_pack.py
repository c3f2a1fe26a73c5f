"""A cache in one file."""

import json
import os
import zipfile

import pytest
import torch

from fedtables.federation.cache import Stage, read_stage, write_stage
from fedtables.results.files import ResultsError, write_sealed_json
from fedtables.results.pack import Packed, read_pack, take_records, write_pack
from fedtables.results.store import CellCache, records_text
from tests.records import made_record

KEYS = ("a" * 64, "b" * 64, "c" * 64)


def cell(home, key, value=1):
    write_sealed_json(home / "cells" / key[:2] / f"{key}.json", {"value": value})


def stage(home, key, values, age=0):
    base = home / "stages" / "local-model" / key[:2] / key
    write_stage(base, Stage({"w": torch.full((values,), 1.0)}), kind="local-model")
    header = base.with_suffix(".json")
    os.utime(header, (header.stat().st_atime, header.stat().st_mtime - age))
    return base


def test_what_is_packed_is_read_on_another_machine(tmp_path):
    here, there, pack = tmp_path / "here", tmp_path / "there", tmp_path / "pack.zip"
    cell(here, KEYS[0])
    base = stage(here, KEYS[1], 5)
    assert write_pack(here, pack, megabytes=1) == Packed(cells=1, stages=1, left=0)
    assert read_pack(pack, there) == Packed(cells=1, stages=1, left=0)
    found, damage = read_stage(there / base.relative_to(here))
    assert damage == ""
    assert found.tensors["w"].tolist() == [1.0] * 5
    name = f"cells/{KEYS[0][:2]}/{KEYS[0]}.json"
    assert (there / name).read_bytes() == (here / name).read_bytes()


def test_what_is_there_already_stays(tmp_path):
    here, there, pack = tmp_path / "here", tmp_path / "there", tmp_path / "pack.zip"
    cell(here, KEYS[0], value=1)
    cell(there, KEYS[0], value=2)
    write_pack(here, pack, megabytes=1)
    before = next(there.rglob("*.json")).read_bytes()
    assert read_pack(pack, there) == Packed(cells=0, stages=0, left=1)
    assert next(there.rglob("*.json")).read_bytes() == before


def record(key, code, **changes):
    return made_record(cell=key, code=code, **changes)


def test_finished_cells_of_a_table_are_taken_but_for_those_that_are_there(tmp_path):
    file, cache = tmp_path / "table.records.jsonl", CellCache(tmp_path)
    theirs = [record(key, "theirs", contract=("a promise",)) for key in KEYS]
    failed = record("d" * 64, "theirs", status="failed")
    file.write_text(records_text([*theirs, failed]))
    cache.put(record(KEYS[0], "theirs"))
    cache.put(record(KEYS[1], "mine"))
    assert take_records(file, tmp_path) == Packed(cells=1, stages=0, left=2)
    assert cache.get(KEYS[1], "mine")[0] == record(KEYS[1], "mine")
    assert cache.get(KEYS[2], "theirs")[0] == record(KEYS[2], "theirs")  # judged anew, when written
    assert cache.get("d" * 64, "theirs") == (None, "")


def test_records_that_are_absent_or_without_seals_are_refused(tmp_path):
    file = tmp_path / "table.records.jsonl"
    with pytest.raises(ResultsError, match="there is no"):
        take_records(file, tmp_path)
    file.write_text(json.dumps(record(KEYS[0], "theirs").to_json()) + "\n")
    with pytest.raises(ResultsError, match="sealed nothing"):
        take_records(file, tmp_path)
    assert not (tmp_path / "cells").exists()


def test_the_newest_stages_are_packed_where_there_is_no_room_for_all(tmp_path):
    here, there, pack = tmp_path / "here", tmp_path / "there", tmp_path / "pack.zip"
    old, new = stage(here, KEYS[0], 1_000, age=60), stage(here, KEYS[1], 1_000)
    assert write_pack(here, pack, megabytes=0.006) == Packed(cells=0, stages=1, left=1)
    read_pack(pack, there)
    assert read_stage(there / new.relative_to(here))[0] is not None
    assert read_stage(there / old.relative_to(here)) == (None, "")


def test_an_empty_cache_is_refused(tmp_path):
    with pytest.raises(ResultsError, match="nothing to pack"):
        write_pack(tmp_path, tmp_path / "pack.zip", 1)
    assert not (tmp_path / "pack.zip").exists()


@pytest.mark.parametrize(
    "name", ["../escaped.json", "cells/aa/short.json", "data/mnist.npz", f"cells/aa/{KEYS[0]}.py"]
)
def test_a_file_that_no_cache_has_is_refused_before_anything_is_written(tmp_path, name):
    pack, home = tmp_path / "pack.zip", tmp_path / "home"
    with zipfile.ZipFile(pack, "w") as archive:
        archive.writestr(f"cells/aa/{KEYS[0]}.json", "{}")
        archive.writestr(name, "{}")
    with pytest.raises(ResultsError, match="is not a pack: it holds"):
        read_pack(pack, home)
    assert not home.exists()


def test_a_pack_that_unpacks_to_more_than_is_allowed_is_refused_before_anything_is_written(
    tmp_path,
):
    home, pack = tmp_path / "home", tmp_path / "pack.zip"
    with zipfile.ZipFile(pack, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"cells/aa/{KEYS[0]}.json", "{}")
        archive.writestr(f"cells/bb/{KEYS[1]}.json", bytes(2_500_000))
    with pytest.raises(ResultsError, match=r"unpacks to 3 MB, more than 2\. .*--megabytes 3$"):
        read_pack(pack, home, 2)
    assert not home.exists()
    assert read_pack(pack, home, 3).cells == 2


def packed(path, how=zipfile.ZIP_DEFLATED):
    name = f"cells/aa/{KEYS[0]}.json"
    with zipfile.ZipFile(path, "w", how) as archive:
        archive.writestr(name, "{}" * 500)
    return path.read_bytes(), 30 + len(name)


@pytest.mark.parametrize("how", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_pack_that_is_packed_otherwise_is_refused_whole_or_damaged(tmp_path, how):
    raw, start = packed(tmp_path / "pack.zip", how)
    for damaged in (raw, raw[:start] + b"x" * 8 + raw[start + 8 :]):
        (tmp_path / "pack.zip").write_bytes(damaged)
        with pytest.raises(ResultsError, match=r"is packed by method 1[24], neither stored"):
            read_pack(tmp_path / "pack.zip", tmp_path / "home")


def test_an_encrypted_pack_and_one_that_lies_about_its_size_are_refused(tmp_path):
    raw, _ = packed(tmp_path / "pack.zip")
    entry = raw.index(b"PK\x01\x02")
    for place, new, message in (
        (entry + 8, b"\x01", "is encrypted"),
        (entry + 24, (9_000_000).to_bytes(4, "little"), "9,000,000 bytes, which is impossible"),
    ):
        (tmp_path / "pack.zip").write_bytes(raw[:place] + new + raw[place + len(new) :])
        with pytest.raises(ResultsError, match=message):
            read_pack(tmp_path / "pack.zip", tmp_path / "home")
    assert not (tmp_path / "home").exists()


def test_a_pack_whose_damage_asks_for_more_memory_than_there_is_is_refused(tmp_path, monkeypatch):
    def read(archive, name):
        raise MemoryError

    packed(tmp_path / "pack.zip")
    monkeypatch.setattr(zipfile.ZipFile, "read", read)
    with pytest.raises(ResultsError, match="cannot be read as a pack: MemoryError"):
        read_pack(tmp_path / "pack.zip", tmp_path / "home")


def test_damaged_and_absent_packs_are_refused(tmp_path):
    home, pack = tmp_path / "home", tmp_path / "pack.zip"
    stage(home, KEYS[0], 5_000)
    write_pack(home, pack, 1)
    raw = pack.read_bytes()
    for damaged in (raw[: len(raw) // 2], b"", raw[:200] + b"x" * 40 + raw[240:]):
        pack.write_bytes(damaged)
        with pytest.raises(ResultsError, match="cannot be read as a pack"):
            read_pack(pack, tmp_path / "there")
    with pytest.raises(ResultsError, match="cannot be read as a pack"):
        read_pack(tmp_path / "nosuch.zip", tmp_path / "there")
