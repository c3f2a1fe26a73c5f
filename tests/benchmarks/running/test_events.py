"""Which cells are run once more, and when."""

import pytest

from fedtables.benchmarks.running.events import (
    DEVICE_FAULT,
    OUT_OF_MEMORY,
    Event,
    failed,
    with_second_tries,
)
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection

CELL = next(iter(expand(*registry.find_table("dlad/table1"), Selection())))
FINE = "ValueError: nothing to do with the device"


def tried(reasons, jobs):
    """Events and calls of three cells that fail for `reasons`, the first time at least."""
    calls = []

    def run(positions, workers):
        calls.append((list(positions), workers))
        for position in positions:
            reason = reasons[position] if len(calls) == 1 else "again"
            yield Event("done", position, text="Traceback", record=failed(CELL, reason))

    events = [(event.kind, event.cell) for event in with_second_tries(run, 3, jobs)]
    return events, calls


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("why", [OUT_OF_MEMORY, DEVICE_FAULT])
def test_after_a_fault_of_the_device_a_cell_is_run_once_more_after_the_others(jobs, why):
    events, calls = tried([f"{why}: at first", FINE, f"{why}: too"], jobs)
    assert calls == [([0, 1, 2], jobs), ([0, 2], 1)]
    assert events == [("again", 0), ("done", 1), ("again", 2), ("done", 0), ("done", 2)]


def test_what_fails_for_another_reason_is_not_run_again():
    events, calls = tried([FINE] * 3, 2)
    assert calls == [([0, 1, 2], 2)]
    assert events == [("done", 0), ("done", 1), ("done", 2)]
