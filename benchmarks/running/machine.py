"""This machine, the state of the checkout on it, and an end that is set beforehand, as a cluster
sets one for a job.
"""

from __future__ import annotations

import itertools
import math
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from fedtables.results.sourcecode import ROOT


def git_commit() -> tuple[str, bool]:
    """The checkout's commit, and whether code differs from it, new files included; empty for an
    installed package, which may lie in another project's checkout, and outside git.
    """
    if not (ROOT / ".git").exists():
        return "", False
    try:
        head = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.strip()
        status = ["git", "status", "--porcelain", "--", "*.py", "results/published"]
        changed = subprocess.run(
            status, cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return "", False
    return head, bool(changed)


def peak_memory_mb(status: Path = Path("/proc/self/status")) -> float:
    """The most memory that this process has filled itself, in MB.

    Pages of libraries are left out where the kernel counts them (Linux): how many of them are
    resident depends on how their files were last read, and differs by hundreds of MB.
    """
    if status.exists():
        lines = (line.split() for line in status.read_text().splitlines())
        kb = {words[0]: int(words[1]) for words in lines if words[-1:] == ["kB"]}
        return round((kb["VmHWM:"] - kb["RssFile:"]) / 2**10, 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)


VISIBLE = "CUDA_VISIBLE_DEVICES"
"""The variable that says which GPUs a process may use."""


def visible_gpus(device: str) -> list[str]:
    """The GPUs that workers of `cuda` share out, as the variable names them; none for another
    device: `cuda:1` is one that the user chose.
    """
    if device != "cuda":
        return []
    if (named := os.environ.get(VISIBLE)) is not None:
        names = (name.strip() for name in named.split(","))
        return list(itertools.takewhile(lambda name: name not in ("", "-1"), names))
    import torch

    return [str(number) for number in range(torch.cuda.device_count())]


def default_jobs(device: str) -> int:
    """One worker per core on the CPU, one per GPU on CUDA, one elsewhere."""
    if device != "cpu":
        return max(1, len(visible_gpus(device)))
    usable = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return usable


class OutOfTimeError(Exception):
    """The time that was allowed is over."""


@dataclass(frozen=True)
class Deadline:
    """When cells must have ended."""

    at: float = math.inf
    """On the clock of `time.monotonic`."""

    @classmethod
    def after(cls, minutes: float) -> Deadline:
        """In so many minutes; never for 0."""
        return cls(time.monotonic() + 60 * minutes if minutes else math.inf)

    def left(self) -> float | None:
        """Seconds to wait for something before asking again, at most an hour of those left; None:
        as long as it takes. Raises OutOfTimeError if none are left.
        """
        if self.at == math.inf:
            return None
        seconds = self.at - time.monotonic()
        if seconds <= 0:
            raise OutOfTimeError
        return min(seconds, 3600)  # more overflows what `poll` takes, from 25 days on


NEVER = Deadline()
