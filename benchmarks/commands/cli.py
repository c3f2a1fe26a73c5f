"""The command line. Every command says what it did, what it did not, and what to do next.

Only what every command needs is imported when this starts: `--help` and `list` answer at once.
"""

from __future__ import annotations

import importlib
import os
import sys

from rich.markup import escape
from typer.completion import completion_init

from benchmarks.commands.app import app, errors
from benchmarks.commands.completion import VARIABLE
from benchmarks.tables.spec import SpecError
from results.files import DataError, ResultsError

VERBS = (
    "list",
    "show",
    "plan",
    "reproduce",
    "sweep",
    "verify",
    "check",
    "data",
    "partition",
    "attack",
)
"""A file each, in the order of `--help`."""

for verb in VERBS:
    importlib.import_module(f"benchmarks.commands.{verb}")


def main() -> None:
    """Run the command line; expected errors become one message and exit code 1, Ctrl-C becomes
    130.
    """
    if VARIABLE in os.environ:
        completion_init()
    try:
        app(complete_var=VARIABLE)
    except (SpecError, DataError, ResultsError) as error:
        errors.print(f"[red]error:[/] {escape(str(error))}", soft_wrap=True)
        sys.exit(1)
    except SystemExit as stop:
        if stop.code == 130:  # what typer makes of Ctrl-C
            errors.print(
                "interrupted. Finished cells and stages are kept; the same command goes on from"
                " there.",
                soft_wrap=True,
            )
        raise
