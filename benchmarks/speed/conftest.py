"""Workers run with one thread each, and so do these; comparisons are printed at the end."""

import pytest
import torch

from fedtables.benchmarks.speed.pairs import FINISHED


@pytest.fixture(autouse=True)
def one_thread():
    """One thread for the time of a benchmark."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def pytest_benchmark_update_json(output_json):
    """Leave out of a committed file which machine and checkout it was, and every single time."""
    for name in ("node", "release"):
        output_json["machine_info"].pop(name, None)
    output_json.pop("commit_info", None)
    for measured in output_json["benchmarks"]:
        measured["stats"].pop("data", None)


def pytest_terminal_summary(terminalreporter):
    """The ratios, which pytest-benchmark's own table does not know."""
    for comparison in FINISHED:
        terminalreporter.write_line(comparison.text())
