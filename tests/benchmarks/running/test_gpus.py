"""GPUs by name."""

import pytest

from benchmarks.running.gpus import GPUS, find_gpus
from benchmarks.tables.spec import SpecError


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
