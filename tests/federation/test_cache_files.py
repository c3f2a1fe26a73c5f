"""Stages on disk: damaged or outdated ones are never served, others are read when looked at."""

import os
import time
from pathlib import Path

import pytest
import torch

from fedtables.federation.cache import Stage, StageCache
from fedtables.results.files import ResultsError
from tests.federation.stages import request

# -- damage and age --


def stored(folder, suffix):
    [path] = folder.rglob(f"*.{suffix}")
    return path


def flip_last(raw):
    return raw[:-3] + bytes([raw[-3] ^ 1]) + raw[-2:]


@pytest.mark.parametrize("suffix", ["safetensors", "json"])
@pytest.mark.parametrize(
    "damage",
    [flip_last, lambda raw: raw[:20], lambda raw: b""],
    ids=["flipped", "truncated", "emptied"],
)
def test_a_damaged_stage_is_computed_again_with_a_note(tmp_path, suffix, damage):
    calls = []
    StageCache(tmp_path).get(request(calls=calls))
    path = stored(tmp_path, suffix)
    path.write_bytes(damage(path.read_bytes()))
    cache = StageCache(tmp_path)
    assert cache.get(request(calls=calls)).tensors["x"].tolist() == [1.0, 2.0]
    assert [(event.computed, event.note) for event in cache.events] == [
        (True, f"damaged cache entry, computed again ({path.with_suffix('')})")
    ]
    cache.get(request(calls=calls))
    assert len(calls) == 2


def test_a_fresh_run_ignores_older_stages_once(tmp_path):
    calls = []
    StageCache(tmp_path).get(request(calls=calls))
    hour_ago = time.time() - 3600
    os.utime(stored(tmp_path, "json"), (hour_ago, hour_ago))
    fresh = StageCache(tmp_path, newer_than=time.time() - 60)
    fresh.get(request(calls=calls))
    fresh.get(request(calls=calls))
    StageCache(tmp_path, newer_than=time.time() - 60).get(request(calls=calls))
    assert len(calls) == 2


# -- read when looked at --


def test_tensors_are_on_disk_until_they_are_looked_at(tmp_path):
    StageCache(tmp_path).get(request({"seed": 1}, 1.0))
    wanted = [request({"seed": seed}, float(seed)) for seed in (1, 2, 3)]  # one read, two computed
    stages = StageCache(tmp_path).get_all(wanted)
    bodies = {path: path.read_bytes() for path in tmp_path.rglob("*.safetensors")}
    for path in bodies:
        path.write_bytes(b"")
    for stage in stages:
        assert stage.info["history"]["accuracy"][0] == 0.25
        with pytest.raises(
            ResultsError,
            match="was changed or removed while a run relied on it; give the command again",
        ):
            stage.tensors["x"]
    for path, raw in bodies.items():
        path.write_bytes(raw)
    assert [stage.tensors["x"].tolist() for stage in stages] == [[1, 2], [2, 2], [3, 2]]


@pytest.mark.parametrize("computed", [True, False], ids=["computed now", "found"])
@pytest.mark.parametrize(
    "look", [lambda t: t["x"], list, len, dict], ids=["a tensor", "names", "how many", "all"]
)
def test_tensors_that_were_removed_meanwhile_are_missed_with_what_to_do(tmp_path, computed, look):
    stage = StageCache(tmp_path).get(request())
    if not computed:
        stage = StageCache(tmp_path).get(request())
    stored(tmp_path, "safetensors").unlink()
    with pytest.raises(
        ResultsError, match=r"\.safetensors was changed or removed .*; give the command again"
    ):
        look(stage.tensors)


def test_what_one_reader_changes_another_does_not_see(tmp_path):
    first, second = StageCache(tmp_path).get(request()), StageCache(tmp_path).get(request())
    for stage in (first, second):
        stage.tensors["x"].zero_()
        dict(stage.tensors)["n"].fill_(9)
    assert [stage.tensors["x"].tolist() for stage in (first, second)] == [[1.0, 2.0]] * 2
    assert [stage.tensors["n"].item() for stage in (first, second)] == [3, 3]


# -- references --


def test_there_is_no_reference_to_what_this_cache_does_not_hold(tmp_path):
    of_another = StageCache(tmp_path / "other").get(request()).tensors
    for cache in (StageCache(tmp_path / "own"), StageCache(None)):
        assert cache.reference({"x": torch.ones(1)}) is None
        assert cache.reference(of_another) is None


@pytest.mark.parametrize(
    "damage", [Path.unlink, lambda path: path.write_bytes(b"")], ids=["removed", "emptied"]
)
def test_a_stage_that_relies_on_a_damaged_one_is_computed_again(tmp_path, damage):
    calls = []

    def relying():
        calls.append(1)
        cache = StageCache(tmp_path)
        return Stage(
            {}, {"references": [cache.reference(cache.get(request({"of": "other"})).tensors)]}
        )

    both = request(compute=relying)
    for _ in range(2):
        StageCache(tmp_path).get(both)
    assert calls == [1]
    damage(StageCache(tmp_path).path(request({"of": "other"})).with_suffix(".safetensors"))
    for _ in range(2):
        cache = StageCache(tmp_path)
        found = cache.referenced(cache.get(both).info["references"][0])
    assert calls == [1, 1]
    assert found["x"].tolist() == [1.0, 2.0]
