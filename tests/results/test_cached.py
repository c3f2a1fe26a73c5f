"""What a cache holds, what is removed from it, and what keeps it from being removed."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from fedtables.federation.cache import Stage, read_stage, write_stage
from fedtables.results.cached import entries, in_use, remove, unreferenced, unused
from fedtables.results.files import ResultsError, cache_home

KEYS = ("a" * 64, "b" * 64, "c" * 64)
HOUR = 3_600


def put(home, name, size=0, hours=0):
    """A file of so many bytes, written so long ago."""
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    os.utime(path, (time.time() - hours * HOUR,) * 2)
    return path


def stage(home, key, **info):
    base = home / "stages" / "local-model" / key[:2] / key
    write_stage(base, Stage({"w": torch.ones(2)}, info), kind="local-model")
    return base


def test_every_kind_is_counted_with_its_files_and_sizes(tmp_path):
    put(tmp_path, f"cells/aa/{KEYS[0]}.json", 10, hours=2)
    put(tmp_path, f"stages/fit/aa/{KEYS[0]}.json", 20, hours=1)
    put(tmp_path, f"stages/fit/aa/{KEYS[0]}.safetensors", 300)
    put(tmp_path, f"stages/fit/bb/{KEYS[1]}-running.pt", 40)
    for folder in ("plans/aa", "contracts", "pictures", "data"):
        put(tmp_path, f"{folder}/{KEYS[0]}.json", 1)
    put(tmp_path, f"decoded/{KEYS[0]}.json", 1)
    put(tmp_path, f"decoded/{KEYS[0]}.train.images.npy", 500)
    put(tmp_path, f"decoded/{KEYS[0]}.train.annotation-left-lung.npy", 60)
    found = entries(tmp_path)
    assert {entry.shown_as: entry.size for entry in found} == {
        **{"cells": 10, "stages/fit": 320, "snapshots": 40, "plans": 1, "contracts": 1},
        **{"pictures": 1, "digests": 1, "decoded": 561},
    }
    assert [entry.shown_as for entry in found[-2:]] == ["stages/fit", "cells"]  # the newest first
    assert [entry.size for entry in entries(tmp_path, "stages", "cells")] == [320, 10]


def test_files_of_the_user_and_of_data_sets_are_nothing_of_the_cache(tmp_path):
    for name in ("data/mnist.npz", f"data/mnist/{KEYS[0]}.json", "cells/aa/notes.json", "a.json"):
        put(tmp_path, name, hours=100)
    assert entries(tmp_path) == entries(tmp_path / "absent") == []


def test_what_killed_processes_left_is_known_after_a_day(tmp_path):
    names = (
        f"cells/aa/.{KEYS[0][:40]}.x1_2",
        f"stages/fit/aa/.{KEYS[0][:40]}.x1_2",
        f"data/.{KEYS[0][:40]}.x1_2",
        f"stages/fit/aa/{KEYS[0]}.safetensors",
        f"stages/fit/aa/{KEYS[1]}.lock",
        f"decoded/{KEYS[1]}.train.images.npy",
    )
    for name in names:
        put(tmp_path, name, hours=23)
    assert entries(tmp_path) == []
    for name in names:
        put(tmp_path, name, hours=25)
    assert {entry.kind for entry in entries(tmp_path)} == {"leftovers"}
    assert {e.files[0] for e in entries(tmp_path)} == {tmp_path / name for name in names}


def test_a_stage_that_is_removed_in_part_is_absent_rather_than_damaged(tmp_path, monkeypatch):
    base = stage(tmp_path, KEYS[0])
    [entry] = entries(tmp_path)
    unlink = type(base).unlink

    def killed(path, **how):
        if path.suffix == ".safetensors":
            raise KeyboardInterrupt
        unlink(path, **how)

    monkeypatch.setattr(type(base), "unlink", killed)
    with pytest.raises(KeyboardInterrupt):
        remove(entry)
    assert read_stage(base) == (None, "")
    monkeypatch.undo()
    remove(entry)
    assert not list(base.parent.iterdir())


def test_a_stage_stays_while_one_that_stays_relies_on_it(tmp_path):
    first = stage(tmp_path, KEYS[0])
    place = first.with_suffix(".safetensors").relative_to(tmp_path / "stages").as_posix()
    second = stage(tmp_path, KEYS[1], references=[[place, "its digest"]])
    place = second.with_suffix(".safetensors").relative_to(tmp_path / "stages").as_posix()
    stage(tmp_path, KEYS[2], references=[[place, "its digest"]])
    by_key = {entry.files[0].stem: entry for entry in entries(tmp_path)}
    assert unreferenced(tmp_path, [by_key[KEYS[0]], by_key[KEYS[1]]]) == []
    assert len(unreferenced(tmp_path, by_key.values())) == 3
    assert unreferenced(tmp_path, [by_key[KEYS[2]]]) == [by_key[KEYS[2]]]


RELIES = """
import sys
from fedtables.results.cached import in_use
with in_use():
    print("relies", flush=True)
    sys.stdin.read()
"""


def test_a_cache_on_which_another_process_relies_is_not_unused_until_that_is_killed():
    words = [sys.executable, "-c", RELIES]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(words, **pipes) as other:
        assert other.stdout.readline() == b"relies\n"
        with in_use():  # several may
            pass
        with pytest.raises(ResultsError, match="another command is running"), unused():
            pass
        other.kill()
    with unused():
        pass


@pytest.mark.parametrize("made", [Path.mkdir, lambda path: path.write_text("no database")])
def test_a_lock_that_is_none_is_refused(made):
    cache_home().mkdir()
    made(cache_home() / "in-use.lock")
    for lock in (in_use, unused):
        with pytest.raises(ResultsError, match=r"in-use\.lock"), lock():
            pass


def test_a_cache_that_is_no_folder_is_refused():
    cache_home().write_text("")
    for lock in (in_use, unused):
        with pytest.raises(ResultsError, match="cannot write"), lock():
            pass
