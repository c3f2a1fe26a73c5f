"""Devices and their hours, and the table of them."""

from collections import Counter
from dataclasses import replace

import pytest

from fedtables.benchmarks.running import hours
from fedtables.benchmarks.running.hours import GPUS, Device, calibration, find_gpus, this_machine
from fedtables.benchmarks.running.plan import Plan
from fedtables.benchmarks.running.speed import Speed
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.federation.costs import Work, Workload
from fedtables.federation.execution import DEFAULT, FAST
from fedtables.federation.memory import Memory
from fedtables.results.files import ResultsError

TINY, OTHER = Workload("cnn-small", (1, 8, 8), 3, 4), Workload("cnn", (1, 8, 8), 3, 4)


def test_gpus_are_found_by_name_in_the_order_asked_for_each_once():
    assert find_gpus("a100,h100,a100") == [GPUS["a100"], GPUS["h100"]]
    # 132.88 TFLOP/s x 312 / 989; launched one by one 97.2.
    assert GPUS["a100"].speed == pytest.approx(4.192e13, rel=1e-3)
    assert GPUS["h100"].launched.speed == pytest.approx(97.2e12, rel=1e-3)
    with pytest.raises(SpecError, match=r"--gpu a10: .*did you mean a100"):
        find_gpus("h100,a10")


def test_a_calibration_is_a_gpu_for_each_way_of_running(tmp_path):
    """A way that replays steps has that of its precision for all others."""
    file = tmp_path / "here.json"
    speeds = {
        "fp32": 1.0,
        "bf16": 2.0,
        "bf16, replayed": 4.0,
        "bf16, replayed, 16 side by side": 8.0,
    }
    measured = {
        TINY: {way: Speed(speed, 1.0, 0) for way, speed in speeds.items()},
        OTHER: {"fp32": Speed(0.5, 1.0, 0), "bf16": "out of memory"},
    }
    file.write_text(calibration("A GPU", {"torch": "2"}, measured))
    fp32, bf16, replayed, beside = find_gpus(str(file))
    assert (fp32.title, fp32.speed, fp32.speeds) == ("A GPU, fp32", 0.5, {TINY: 1.0, OTHER: 0.5})
    assert (bf16.title, bf16.speed, bf16.speeds) == ("A GPU, bf16", 2.0, {TINY: 2.0})
    assert [gpu.launched for gpu in (fp32, bf16, replayed, beside)] == [None, None, bf16, bf16]
    assert replayed.source.endswith("; what no graph holds, by A GPU, bf16")


NO_SPEED = calibration("A GPU", {}, {TINY: {"fp32": Speed(0.0, 0.0, 0)}})


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"device": "x", "measured": []}', NO_SPEED, None]
)
def test_what_is_no_calibration_is_refused(tmp_path, content):
    file = tmp_path / "here.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(SpecError, match=r"--gpu .*here\.json"):
        find_gpus(str(file))


def test_hours_are_those_of_each_network_at_its_own_speed():
    plan = Plan(workloads=Counter({(TINY, False): 7_200, (OTHER, False): 21_600}))
    assert Device("", 2.0, "").hours(plan) == 4.0
    assert Device("", 2.0, "", {TINY: 4.0}).hours(plan) == 0.5 + 3.0
    assert Device("", 0.0, "").hours(plan) == 0.0


def test_what_no_graph_holds_runs_as_without_graphs():
    plan = Plan(
        workloads=Counter({(TINY, True): 7_200, (TINY, False): 7_200, (OTHER, True): 14_400})
    )
    launched = Device("", 2.0, "", {TINY: 1.0})
    # Replayed: 7,200 at 4 and 14,400 at 8. Launched: the other 7,200 of TINY at 1.
    assert Device("", 8.0, "", {TINY: 4.0}, launched).hours(plan) == 0.5 + 0.5 + 2.0
    assert Device("", 8.0, "", {TINY: 4.0}).hours(plan) == 1.0 + 0.5


def test_a_network_runs_at_the_speed_of_the_nearest_batch_that_was_measured():
    few, many, other = (
        replace(TINY, batch_size=n, outputs=k) for n, k in ((4, 3), (64, 3), (8, 5))
    )
    device = Device("", 9.0, "", {few: 1.0, many: 2.0, other: 3.0})
    assert device.speed_of(replace(TINY, batch_size=10)) == 1.0
    assert device.speed_of(replace(TINY, batch_size=20)) == 2.0
    assert device.speed_of(replace(other, batch_size=64)) == 3.0
    assert device.speed_of(replace(TINY, image_shape=(1, 16, 16))) == 9.0


LAUNCHED = replace(FAST, compile="off")


@pytest.mark.parametrize(
    ("gpu", "profile", "title", "how", "launched"),
    [
        (False, "paper", "core", ("cpu", DEFAULT), None),
        (True, "paper", "GPU", ("cuda", FAST), ("cuda", LAUNCHED)),
        (True, "cpu", "core", ("cpu", DEFAULT), None),
    ],
)
def test_this_machine_is_what_the_profile_runs_on_at_the_speed_of_the_network_of_most_work(
    gpu, profile, title, how, launched, monkeypatch
):
    asked = []
    monkeypatch.setattr(hours.torch.cuda, "is_available", lambda: gpu)
    monkeypatch.setattr(
        hours, "training_speed", lambda *given: asked.append(given) or Speed(5.0, 1.0, 0)
    )
    loads = {(TINY, True): 4, (TINY, False): 4, (OTHER, True): 6}
    found = this_machine(Plan(workloads=Counter(loads)), profile)
    ways = [way for way in (how, launched) if way]
    assert (found.title, found.speed, asked) == (title, 5.0, [(TINY, *way) for way in ways])
    assert (found.launched is not None) == (launched is not None)
    assert this_machine(Plan(), profile).speed == 0.0


SLOW = Device("Slow (1 GB)", 1e15, "made up")
PLAN = Plan(
    cells=2,
    distinct=Counter({"fit": 2, "teacher": 1}),
    work=Work(flops=7_200 * 10**15),
    workloads=Counter({(TINY, False): 7_200 * 10**15}),
    memory=Memory(3 * 2**29, 2**30),
    bytes_sent=1_500_000_000,
)


def test_tables_that_no_card_holds_are_named():
    small = replace(SLOW, title="Small (1 GB)", memory=10**9)
    large = replace(SLOW, title="Large (2 GB)", memory=2 * 10**9)
    plans = {"a/b": PLAN, "a/c": Plan(memory=Memory(10**9)), hours.SUITE: PLAN}
    said = "More memory than one Small (1 GB) has: a/b"
    assert list(hours.too_large(plans, [small, large, SLOW])) == [said]


def test_a_page_has_one_section_a_profile():
    first, second = "## Profile `cpu`\n\nold\n", "## Profile `gpu`\n\nkept\n"
    page = hours.placed(second, hours.placed(first, "# Hours\n\nBy hand.\n"))
    assert page == f"# Hours\n\nBy hand.\n\n{first}\n{second}"
    assert hours.placed(first.replace("old", "new"), page) == page.replace("old", "new")
    assert hours.placed(second.replace("kept", "new"), page) == page.replace("kept", "new")


def test_a_page_that_is_no_text_is_refused_before_anything_is_planned(tmp_path):
    path = tmp_path / "page.md"
    assert hours.page_at(path) == hours.PAGE
    path.write_bytes(b"\xff")
    with pytest.raises(ResultsError, match="page"):
        hours.page_at(path)


def test_sums_are_set_apart_and_speeds_have_their_source():
    text = hours.markdown({"a/b": PLAN, hours.SUITE: PLAN}, ["a"], "cpu", [SLOW])
    lines = text.splitlines()
    assert "`fedtables plan a --profile cpu --markdown FILE`" in lines[2]
    assert lines[6:8] == [
        "| a/b | 2 | 3 | 7.2 | 2 | 1.5 | 1.50 | 1.00 |",
        "| **all** | **2** | **3** | **7.2** | **2** | **1.5** | **1.50** | **1.00** |",
    ]
    assert lines[-1] == "- Slow (1 GB): 1.0e+15 FLOP/s, made up."
