"""What a process says of its machine, and how long it may still wait."""

import time
from pathlib import Path

import pytest

from fedtables.benchmarks.running.machine import (
    NEVER,
    Deadline,
    OutOfTimeError,
    default_jobs,
    peak_memory_mb,
    visible_gpus,
)


def test_peak_memory_leaves_out_the_pages_of_library_files(tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tpython\nVmHWM:\t  3072 kB\nRssFile:\t  1024 kB\nThreads:\t2\n")
    assert peak_memory_mb(status) == 2


def test_what_is_left_is_counted_down_to_the_end():
    deadline = Deadline.after(1)
    first = deadline.left()
    assert first is not None
    assert 59 < first <= 60
    assert Deadline(time.monotonic() + 5).left() == pytest.approx(5, abs=1)
    with pytest.raises(OutOfTimeError):
        Deadline(time.monotonic()).left()


def test_no_minutes_are_no_limit():
    assert Deadline.after(0) == NEVER
    assert NEVER.left() is None


@pytest.mark.parametrize(
    ("named", "gpus"),
    [("0,1,2", ["0", "1", "2"]), (" 3 , 5", ["3", "5"]), ("GPU-1a,-1,2", ["GPU-1a"]), ("", [])],
)
def test_every_visible_gpu_has_a_worker_and_one_that_is_chosen_has_them_all(
    monkeypatch, named, gpus
):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    assert visible_gpus("cuda") == gpus
    assert default_jobs("cuda") == max(1, len(gpus))
    assert visible_gpus("cuda:1") == visible_gpus("cpu") == []
    assert default_jobs("cuda:1") == 1
