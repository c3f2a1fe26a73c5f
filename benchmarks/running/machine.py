"""This machine, and the state of the checkout on it."""

from __future__ import annotations

import os
import subprocess

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


def default_jobs(device: str) -> int:
    """One worker per core on the CPU, one on an accelerator."""
    usable = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return usable if device == "cpu" else 1
