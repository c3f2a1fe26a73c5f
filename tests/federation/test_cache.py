"""The stage cache: computed once by whoever asks first, and known by what determines it."""

import functools
import os
import subprocess
import sys
import threading
import time
from importlib import metadata
from pathlib import Path

import pytest
import torch

from fedtables.federation.cache import Stage, StageCache, content_digest
from fedtables.results.sourcecode import source_digest, source_libraries
from tests.federation.stages import request

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(params=["disk", "memory"])
def cache(request, tmp_path):
    return StageCache(tmp_path / "stages" if request.param == "disk" else None)


# -- reuse --


@pytest.mark.parametrize("library", ["monai", "scikit-learn", "scipy", "torch"])
def test_another_version_of_a_library_gives_another_key(library, monkeypatch):
    def key():
        source_digest.cache_clear()
        source_libraries.cache_clear()
        return request(code="fedtables.federation.inside.stages").key

    first, real = key(), metadata.version
    with monkeypatch.context() as other:
        other.setattr(metadata, "version", lambda name: "0" if name == library else real(name))
        assert key() != first
    assert key() == first


def test_what_an_owner_computes_is_for_nobody_else(tmp_path):
    def asked_by(owner, number):
        compute = functools.partial(Stage, {"x": torch.tensor(number)})
        stage = StageCache(tmp_path, owner=owner).get(request(compute=compute))
        return stage.tensors["x"].item()

    assert asked_by("plug-in", 1) == asked_by("plug-in", 2) == 1
    assert asked_by("another", 3) == 3
    assert asked_by("", 4) == 4
    assert asked_by("a third", 5) == asked_by("", 6) == 4


def test_a_stage_is_computed_once(cache):
    calls = []
    first, second = cache.get(request(calls=calls)), cache.get(request(calls=calls))
    assert calls == [1.0]
    assert torch.equal(first.tensors["x"], second.tensors["x"])
    assert [event.computed for event in cache.events] == [True, False]


@pytest.mark.parametrize(
    "other",
    [
        {"inputs": {"seed": 1}},
        {"inputs": {"seed": 0, "lr": 0.1}},
        {"kind": "other"},
        {"code": "fedtables.results.record"},
    ],
    ids=["another value", "another input", "another kind", "other code"],
)
def test_what_determines_a_stage_makes_another_stage(cache, other):
    calls = []
    cache.get(request(calls=calls))
    cache.get(request(**other, calls=calls))
    assert len(calls) == 2


def test_a_stage_that_fails_is_not_kept_and_not_locked(cache):
    def fail():
        raise RuntimeError("no memory")

    with pytest.raises(RuntimeError, match="no memory"):
        cache.get(request(compute=fail))
    assert cache.get(request()).tensors["x"].tolist() == [1.0, 2.0]


# -- several at once --


def test_a_stage_that_another_is_computing_is_left_to_it_while_the_rest_is_done(tmp_path):
    started, others_done = threading.Event(), threading.Event()
    log = []

    def slow():
        log.append("slow")
        started.set()
        assert others_done.wait(20)
        return Stage({"x": torch.zeros(1)})

    def quick():
        log.append("quick")
        others_done.set()
        return Stage({"x": torch.ones(1)})

    first = threading.Thread(
        target=lambda: StageCache(tmp_path).get(request({"of": "slow"}, compute=slow))
    )
    first.start()
    assert started.wait(60)
    both = StageCache(tmp_path).get_all(
        [request({"of": "slow"}, compute=slow), request({"of": "quick"}, compute=quick)]
    )
    first.join()
    assert [stage.tensors["x"].item() for stage in both] == [0, 1]
    assert log == ["slow", "quick"]


SCRIPT = """
import os, sys, time
from pathlib import Path
import torch
from fedtables.federation.cache import Stage, StageCache, StageRequest

folder, mode, wait_for = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])

def compute():
    with (folder / "log").open("a") as log:
        log.write(f"{os.getpid()}\\n")
    time.sleep(600 if mode == "hang" else 0.5)
    return Stage({"x": torch.tensor([4.0])})

(folder / f"ready{os.getpid()}").touch()
while len(list(folder.glob("ready*"))) < wait_for:
    time.sleep(0.01)
request = StageRequest("test", "slow", {"seed": 0}, compute, "fedtables.results.files")
print(StageCache(folder / "stages").get(request).tensors["x"].item())
"""


def start(folder, mode, wait_for):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", SCRIPT, str(folder), mode, str(wait_for)]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)


def test_two_processes_that_need_one_stage_compute_it_once(tmp_path):
    processes = [start(tmp_path, "compute", 2) for _ in range(2)]
    assert [process.communicate(timeout=120)[0] for process in processes] == ["4.0\n", "4.0\n"]
    assert len((tmp_path / "log").read_text().splitlines()) == 1


def test_a_killed_process_leaves_no_lock_behind(tmp_path):
    hanging = start(tmp_path, "hang", 1)
    deadline = time.monotonic() + 120
    while not (tmp_path / "log").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    hanging.kill()
    hanging.communicate()
    stage = StageCache(tmp_path / "stages").get(request())
    assert stage.tensors["x"].tolist() == [1.0, 2.0]


# -- content --


def test_content_is_known_by_names_shapes_types_and_bytes():
    base = {"a": torch.tensor([1.0, 2.0]), "b": torch.tensor([[3]])}
    others = [
        {"a": base["a"], "c": base["b"]},
        {"a": base["a"].view(2, 1), "b": base["b"]},
        {"a": base["a"].view(torch.int32), "b": base["b"]},
        {"a": torch.tensor([1.0, 2.5]), "b": base["b"]},
        {"a": base["a"]},
    ]
    digests = {content_digest(tensors) for tensors in [base, *others]}
    assert len(digests) == 6


def test_content_does_not_depend_on_order_layout_or_gradients():
    a, b = torch.rand(1, 3, 2, 2), torch.rand(2)
    reference = content_digest({"a": a, "b": b})
    assert (
        content_digest(
            {"b": b.clone().requires_grad_(), "a": a.to(memory_format=torch.channels_last)}
        )
        == reference
    )


def test_content_without_bytes_is_known_by_its_scope():
    empty = {"a": torch.empty(3, device="meta")}
    assert (
        content_digest(empty, "cell 1")
        == content_digest(empty, "cell 1")
        != content_digest(empty, "cell 2")
    )
