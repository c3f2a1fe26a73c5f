"""What the measuring kit prints and writes; how fast anything is no test looks at."""

import functools

import pytest
from rich.console import Console

from fedtables.benchmarks.running.hours import find_gpus
from fedtables.benchmarks.running.speed import flops_per_sample
from fedtables.benchmarks.speed import cuda
from fedtables.benchmarks.speed.cuda import (
    main,
    read_workloads,
    shown_speed,
    speed_of,
    workloads,
    write_workloads,
)
from fedtables.federation.costs import Workload
from fedtables.federation.execution import Execution

TINY = Workload("cnn-small", (1, 8, 8), 3, 4)


def test_a_way_that_a_network_does_not_admit_is_named_and_not_the_end(monkeypatch):
    def refused(*arguments):
        raise NotImplementedError("no such kernel")

    monkeypatch.setattr(cuda, "training_speed", refused)
    assert speed_of(TINY, "cpu", Execution()) == "NotImplementedError"
    assert shown_speed("out of memory") == "out of memory"


def test_what_was_measured_is_a_calibration_that_plan_reads(tmp_path, capsys, monkeypatch):
    short = functools.partial(cuda.training_speed, seconds=0.0)
    monkeypatch.setattr(cuda, "training_speed", short)
    file = tmp_path / "here.json"
    options = ("--device", "cpu", "--profile", "smoke", "--output", str(file))
    main(["dlad/table2", "--minutes", "5", *options])
    # Images of two kinds, in the clients' batches and in the server's.
    assert capsys.readouterr().out.count("| cnn-small |") == 4
    gpus = find_gpus(str(file))
    assert [gpu.title for gpu in gpus] == [f"CPU core, {way}" for way in ("fp32", "bf16")]
    assert all(len(gpu.speeds) == 4 and gpu.speed > 0 for gpu in gpus)


def test_the_list_of_workloads_is_of_networks_that_there_are(monkeypatch, tmp_path):
    loads = read_workloads()
    assert all(flops_per_sample(load, load.image_shape[1:]) > 0 for load in loads)
    assert len(set(loads)) == len(loads) > 20
    monkeypatch.setattr(cuda, "WORKLOADS", tmp_path / "workloads.csv")
    write_workloads([TINY, *loads])
    assert read_workloads() == [TINY, *loads]


@pytest.mark.slow  # all papers at their own sizes are planned, some minutes
def test_the_list_of_workloads_is_that_of_all_papers():
    assert set(read_workloads()) == set(workloads([], "paper", Console(stderr=True)))


def test_what_fills_a_gpu_by_itself_is_not_stacked(monkeypatch):
    monkeypatch.setattr(cuda, "LARGE_STEP", 1.0)
    assert speed_of(TINY, "cpu", Execution(stacked=2)) == "large"


def test_what_there_is_no_time_for_is_said(tmp_path, capsys):
    file = tmp_path / "here.json"
    options = ("--device", "cpu", "--profile", "smoke", "--output", str(file))
    main(["dlad/table2", "--minutes", "0", *options])
    assert "the time was over with 4 networks to go" in capsys.readouterr().out
    assert not file.exists()
