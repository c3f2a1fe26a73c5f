"""Kills, two runs at once, a full disk and a clock that was set back end with the CSV of an
undisturbed run. `python -m tests.faults` does more of each.
"""

import random

import pytest

from tests.faults import Faults


@pytest.fixture(scope="module")
def faults(tmp_path_factory):
    made = Faults(tmp_path_factory.mktemp("faults"), "fedavg", 4, random.Random(0))
    made.undisturbed()
    return made


def test_a_killed_command_and_a_killed_worker_go_on_from_their_snapshots(faults):
    faults.kills(2)
    assert faults.counts["kills of a command"] == faults.counts["kills of a worker"] == 1


def test_two_runs_at_once_make_one_table(faults):
    faults.at_once(2, together=True)


@pytest.mark.parametrize("what", ["cache", "results"])
def test_a_full_disk_is_told_and_mended(faults, what):
    faults.full_disk(what, 2**12)
    assert faults.counts[f"full disks for the {what}"] == 1


def test_a_clock_that_was_set_back_changes_nothing(faults):
    faults.clock_set_back()
