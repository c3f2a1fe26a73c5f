"""A fit's process: what it returns, raises and keeps."""

import os
from pathlib import Path

import pytest
import torch

from benchmarks.contract.process import EndedError, in_own_process

KEPT = []


def test_a_value_comes_back_and_nothing_else():
    assert in_own_process(lambda _: (KEPT.append(1), os.getpid())[1]) != os.getpid()
    assert KEPT == []


def test_two_processes_draw_otherwise_from_generators_without_seed():
    first, second = (in_own_process(lambda _: torch.rand(4).tolist()) for _ in range(2))
    assert first != second


def test_an_exception_comes_back_with_its_lines():
    with pytest.raises(ZeroDivisionError) as raised:
        in_own_process(lambda _: 1 / 0)
    assert raised.value.lines[-1][0] == __file__


def test_a_process_that_ends_is_told_from_one_that_returns():
    with pytest.raises(EndedError, match="exit code 3"):
        in_own_process(lambda _: os._exit(3))
    with pytest.raises(EndedError, match="killed by signal 9"):
        in_own_process(lambda _: os.kill(os.getpid(), 9))


def test_files_that_are_no_code_are_closed_while_a_method_fits(tmp_path):
    path = tmp_path / "samples.txt"
    path.write_text("1")

    def tries(closed):
        read = Path(__file__).read_text()
        with closed.fitting():
            for path_of in (path, tmp_path / "new.py"):
                try:
                    path_of.open("w" if path_of.suffix == ".py" else "r").close()
                except Exception as error:
                    read = type(error).__name__
        path.read_text()
        return read, closed.found

    refused, found = in_own_process(tries)
    assert refused == "AccessError"
    assert found == [f"it reads {path}", f"it writes {tmp_path / 'new.py'}"]
