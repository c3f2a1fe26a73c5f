"""`python -m benchmarks ARGUMENTS`, and what goes wrong meanwhile, as variables `FAULT_...` say.

`tests.faults` runs it by `tests.forking`, whose workers are forked, so that they have the same
faults.
"""

from __future__ import annotations

import os
import resource
import runpy
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from federation.snapshots import Snapshots

NOTES, DELAY, ALONE, LARGEST = "FAULT_NOTES", "FAULT_DELAY", "FAULT_ALONE", "FAULT_LARGEST"
"""The file that is told what happens; seconds from the beginning of a fit's rounds to a SIGKILL;
set if it hits the worker alone; bytes that no file may exceed."""


def note(line: str) -> None:
    """Add a line to the notes: one write, so that those of several processes do not mix."""
    with Path(os.environ[NOTES]).open("a") as stream:
        stream.write(line + "\n")


def watch_rounds() -> None:
    """Keep a snapshot after every round, note where a fit goes on from, and kill it in time."""
    begin = Snapshots.__init__
    resume = Snapshots.resume

    def init(self: Snapshots, base: Path, newer_than: float = 0.0, every: float = 0.0) -> None:
        begin(self, base, newer_than, every)

    def resuming(self: Snapshots, parts: Mapping[str, Any]) -> Any:
        if DELAY in os.environ:
            threading.Thread(target=die, args=(float(os.environ[DELAY]),), daemon=True).start()
        state = resume(self, parts)
        note(f"rounds {state[0]}")
        return state

    Snapshots.__init__, Snapshots.resume = init, resuming  # type: ignore[method-assign]


def die(delay: float) -> None:
    """Kill this worker, and the command before it unless it is to outlive it."""
    command = os.getppid()
    time.sleep(delay)
    note("killed")
    if ALONE not in os.environ and os.getppid() == command:
        os.kill(command, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    watch_rounds()
    if LARGEST in os.environ:
        size = int(os.environ[LARGEST])
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    runpy.run_module("benchmarks", run_name="__main__", alter_sys=True)
