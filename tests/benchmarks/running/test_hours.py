"""The table of hours."""

from collections import Counter
from dataclasses import replace

from benchmarks.running import hours
from benchmarks.running.gpus import GPU
from benchmarks.running.plan import Plan
from federation.costs import Work

SLOW = GPU("Slow (1 GB)", 1e15, "made up")
PLAN = Plan(
    cells=2,
    distinct=Counter({"fit": 2, "teacher": 1}),
    work=Work(flops=7_200 * 10**15),
    peak_bytes=3 * 2**29,
    bytes_sent=1_500_000_000,
)


def test_hours_are_work_over_speed_and_bytes_are_in_gb():
    assert list(hours.rows({"a/b": PLAN}, [SLOW])) == [["a/b", "2", "3", "7.2", "2", "1.5", "1.50"]]


def test_tables_that_no_card_holds_are_named():
    small = replace(SLOW, title="Small (1 GB)", memory=10**9)
    large = replace(SLOW, title="Large (2 GB)", memory=2 * 10**9)
    plans = {"a/b": PLAN, "a/c": Plan(peak_bytes=10**9), hours.SUITE: PLAN}
    said = "More memory than one Small (1 GB) has: a/b"
    assert list(hours.too_large(plans, [small, large, SLOW])) == [said]
    lines = hours.markdown(plans, ["a"], "paper", [small]).splitlines()
    assert lines[-1] == f"- {said}."


def test_sums_are_set_apart_and_speeds_have_their_source():
    text = hours.markdown({"a/b": PLAN, hours.SUITE: PLAN}, ["a"], "cpu", [SLOW])
    lines = text.splitlines()
    assert "`python -m benchmarks plan a --profile cpu --markdown FILE`" in lines[2]
    assert lines[6:8] == [
        "| a/b | 2 | 3 | 7.2 | 2 | 1.5 | 1.50 |",
        "| **all** | **2** | **3** | **7.2** | **2** | **1.5** | **1.50** |",
    ]
    assert lines[-1] == "- Slow (1 GB): 1e+15 FLOP/s, made up."
