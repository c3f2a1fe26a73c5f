"""This machine, and the state of the checkout on it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

from results.sourcecode import ROOT


def git_commit() -> tuple[str, bool]:
    """The checkout's commit, and whether code differs from it, new files included; empty outside
    git.
    """
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


def default_jobs(device: str) -> int:
    """One worker per core on the CPU, one on an accelerator."""
    usable = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return usable if device == "cpu" else 1
