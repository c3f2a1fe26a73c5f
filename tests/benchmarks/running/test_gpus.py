"""GPUs by name."""

from collections import Counter

import pytest

from benchmarks.running.gpus import GPU, GPUS, calibration, find_gpus
from benchmarks.running.plan import Plan
from benchmarks.running.speed import Speed
from benchmarks.tables.spec import SpecError
from federation.costs import Work, Workload


def test_gpus_are_found_by_name_in_the_order_asked_for_each_once():
    assert find_gpus("a100,h100,a100") == [GPUS["a100"], GPUS["h100"]]


def test_an_unknown_gpu_is_refused_with_near_names():
    with pytest.raises(SpecError, match=r"--gpu a10: .*did you mean a100"):
        find_gpus("h100,a10")


def test_a_speed_that_is_derived_says_so():
    # 11 TFLOP/s x 19.5 / 67.
    assert GPUS["a100"].speed == pytest.approx(3.2015e12, rel=1e-4)
    assert "not measured" in GPUS["a100"].source
    assert GPUS["h100"].source.startswith("measured")


TINY, OTHER = Workload("cnn-small", (1, 8, 8), 3, 4), Workload("cnn", (1, 8, 8), 3, 4)


def test_a_calibration_is_a_gpu_for_each_way_of_running(tmp_path):
    file = tmp_path / "here.json"
    measured = {
        TINY: {"fp32": Speed(4.0, 1.0, 0), "bf16": Speed(8.0, 2.0, 0)},
        OTHER: {"fp32": Speed(2.0, 1.0, 0), "bf16": "out of memory"},
    }
    file.write_text(calibration("A GPU", {"torch": "2"}, measured))
    plain, fast = find_gpus(str(file))
    assert (plain.title, plain.speed, plain.speeds) == ("A GPU, fp32", 2.0, {TINY: 4.0, OTHER: 2.0})
    assert (fast.title, fast.speed, fast.speeds) == ("A GPU, bf16", 8.0, {TINY: 8.0})


def test_hours_are_those_of_each_network_at_its_own_speed():
    plan = Plan(work=Work(flops=28_800), workloads=Counter({TINY: 7_200, OTHER: 14_400}))
    assert GPU("", 2.0, "").hours(plan) == 4.0
    # 7,200 at 4, and what is left, other networks' and what clients have no part in, at 2.
    assert GPU("", 2.0, "", {TINY: 4.0}).hours(plan) == 0.5 + 3.0


def test_what_no_graph_holds_runs_as_without_graphs():
    plan = Plan(
        work=Work(flops=28_800, replayable_flops=21_600),
        workloads=Counter({TINY: 14_400, OTHER: 14_400}),
        replayable=Counter({TINY: 7_200, OTHER: 14_400}),
    )
    launched = GPU("", 2.0, "", {TINY: 1.0})
    # Replayed: 7,200 at 4 and 14,400 at 8. Launched: the other 7,200 of TINY at 1.
    assert GPU("", 8.0, "", {TINY: 4.0}, launched).hours(plan) == 0.5 + 0.5 + 2.0
    assert GPU("", 8.0, "", {TINY: 4.0}).hours(plan) == 1.0 + 0.5


def test_a_way_that_replays_steps_has_that_of_its_precision_for_all_others(tmp_path):
    file = tmp_path / "here.json"
    speeds = {
        "fp32": 1.0,
        "bf16": 2.0,
        "bf16, replayed": 4.0,
        "bf16, replayed, 16 side by side": 8.0,
    }
    measured = {TINY: {way: Speed(speed, 1.0, 0) for way, speed in speeds.items()}}
    file.write_text(calibration("A GPU", {}, measured))
    fp32, bf16, replayed, beside = find_gpus(str(file))
    assert [gpu.launched for gpu in (fp32, bf16, replayed, beside)] == [None, None, bf16, bf16]
    assert replayed.source.endswith("; what no graph holds, by A GPU, bf16")


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"device": "x", "measured": 3}', '{"device": "x", "measured": []}'],
)
def test_what_is_no_calibration_is_refused(tmp_path, content):
    file = tmp_path / "here.json"
    file.write_text(content)
    with pytest.raises(SpecError, match=r"--gpu .*here\.json"):
        find_gpus(str(file))
    with pytest.raises(SpecError, match="no calibration that can be read"):
        find_gpus(str(tmp_path / "nosuch.json"))
