"""Time and memory of a table, and settings that differ."""

import pytest

from fedtables.reports.comparing.rule import COST
from tests.reports.comparing.sets import (
    RUN,
    differences,
    line,
    record,
    result_set,
    with_records,
)


def costs(tmp_path, base, new, **rule):
    sets = with_records(tmp_path, "a", *base), with_records(tmp_path, "b", *new)
    return {d.cell[3]: (d.verdict, d.why) for d in differences(*sets, **rule) if d.kind == COST}


def test_time_is_the_sum_and_memory_the_largest_over_the_cells_that_both_sets_have(tmp_path):
    base = (
        record(),
        record(row="b", seconds=10.0, peak_memory_mb=1000.0),
        record(row="c", seconds=1000.0),
    )
    new = record(seconds=75.0, peak_memory_mb=1600.0), record(row="b", seconds=10.0)
    assert costs(tmp_path, base, new) == {
        "time": ("slower", "ratio 2.12, 2 allowed"),
        "peak memory": ("larger", "ratio 1.60, 1.5 allowed"),
    }
    relaxed = costs(tmp_path, base, new, time_ratio=2.5, memory_ratio=2)
    assert [verdict for verdict, _ in relaxed.values()] == ["same", "same"]
    assert costs(tmp_path, base, new, time_ratio=0).keys() == {"peak memory"}
    assert costs(tmp_path, base, new, time_ratio=0, memory_ratio=0) == {}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"stages": {"computed": 0}},
            "2 and 0 stages were computed, the others found in the cache",
        ),
        ({"machine": {**RUN, "threads": 4}}, "threads is 1 and 4"),
        ({"machine": {**RUN, "precision": "bf16"}}, "precision is fp32 and bf16"),
        ({"seed": 1}, "no cell finished in both sets with the same seed"),
    ],
)
def test_costs_of_other_work_are_not_compared(tmp_path, changes, why):
    new = record(**{"seconds": 500.0, "peak_memory_mb": 5000.0, **changes})
    assert costs(tmp_path, [record()], [new]) == {"time, peak memory": ("not compared", why)}


@pytest.mark.parametrize(
    ("name", "why"),
    [("hardware", "hardware is A and B"), ("kernels", "kernels is not recorded and B")],
)
def test_times_on_another_processor_are_not_compared(tmp_path, name, why):
    other = costs(tmp_path, [record()], [record(seconds=500.0, machine={**RUN, name: "B"})])
    assert other == {
        "time": ("not compared", why),
        "peak memory": ("same", "ratio 1.00, 1.5 allowed"),
    }


def test_without_records_nothing_is_said_of_costs_but_that(tmp_path):
    base, new = (
        with_records(tmp_path, "a", record()),
        result_set(tmp_path, "b", line(), line(row="b")),
    )
    *cells, cost = differences(base, new)
    assert [d.verdict for d in cells] == ["same", "same"]
    assert cost.why == "no records beside the CSV (new), so data digests were not compared either"
