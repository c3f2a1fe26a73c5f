"""What a forked command leaves is what one of its own process would leave."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.forking import run_forked


def test_code_streams_and_environment_are_the_commands_own():
    statement = "import os, sys; print(os.environ['WORD']); print('no', file=sys.stderr)"
    arguments = ("-n", "1", "-r", "1", statement)
    done = run_forked("timeit", *arguments, timeout=60, env={**os.environ, "WORD": "yes"})
    assert (done.returncode, done.stdout.splitlines()[0], done.stderr) == (0, "yes", "no\n")
    assert "WORD" not in os.environ
    failed = run_forked("timeit", "-n", "1", "raise SystemExit('why')", timeout=60, env=os.environ)
    assert failed.returncode == 1
    assert "why" in failed.stderr


def test_a_command_that_takes_too_long_is_ended_and_the_next_one_runs():
    with pytest.raises(subprocess.TimeoutExpired):
        run_forked("timeit", "-n", "1", "import time; time.sleep(60)", timeout=1, env=os.environ)
    assert run_forked("calendar", "2026", "11", timeout=60, env=os.environ).returncode == 0


def test_a_signal_that_ends_a_command_is_its_code():
    kill = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert run_forked("timeit", "-n", "1", kill, timeout=60, env=os.environ).returncode == -9
