"""The command line. Every command says what it did, what it did not, and what to do next.

Only what every command needs is imported when this starts: `--help` and `list` answer at once.
"""

from __future__ import annotations

import importlib
import os
from typing import NoReturn

from typer.completion import completion_init

from benchmarks.commands.app import app
from benchmarks.commands.completion import VARIABLE
from results.command_line import run

VERBS = (
    "list",
    "show",
    "plan",
    "reproduce",
    "pack",
    "sweep",
    "verify",
    "check",
    "data",
    "partition",
    "attack",
    "cards",
)
"""A file each, in the order of `--help`."""

for verb in VERBS:
    importlib.import_module(f"benchmarks.commands.{verb}")


def main() -> NoReturn:
    """Run the command line and end the process (`results.command_line.run`)."""
    if VARIABLE in os.environ:
        completion_init()
    run(
        app,
        "interrupted. Finished cells and stages are kept; the same command goes on from there.",
        complete_var=VARIABLE,
    )
