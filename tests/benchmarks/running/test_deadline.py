"""A limit of time: how long may still be waited, and its end."""

import time

import pytest

from benchmarks.running.deadline import NEVER, Deadline, OutOfTimeError


def test_what_is_left_is_counted_down_to_the_end():
    deadline = Deadline.after(1)
    first = deadline.left()
    assert first is not None
    assert 59 < first <= 60
    assert Deadline(time.monotonic() + 5).left() == pytest.approx(5, abs=1)
    with pytest.raises(OutOfTimeError):
        Deadline(time.monotonic()).left()


def test_no_minutes_are_no_limit():
    assert Deadline.after(0) == NEVER
    assert NEVER.left() is None
