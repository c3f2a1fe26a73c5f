"""A limit of time: it ends what goes on too long, and leaves no alarm behind."""

import signal
import time

import pytest

from benchmarks.running.deadline import OutOfTime, time_limit
from benchmarks.tables.spec import SpecError


def sleep_as_a_cell_would():
    """Long, with all errors caught."""
    try:
        time.sleep(60)
    except Exception:
        pytest.fail("taken for an error")


def test_what_takes_too_long_is_ended_and_no_error_of_a_cell():
    started = time.monotonic()
    with pytest.raises(OutOfTime), time_limit(0.05 / 60):
        sleep_as_a_cell_would()
    assert time.monotonic() - started < 30


@pytest.mark.parametrize("minutes", [0, 10])
def test_what_ends_in_time_is_left_alone_and_no_alarm_remains(minutes):
    before = signal.getsignal(signal.SIGALRM)
    with time_limit(minutes):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) is before


def test_less_than_no_time_is_refused():
    with pytest.raises(SpecError, match="above 0"):
        with time_limit(-1):
            pass
