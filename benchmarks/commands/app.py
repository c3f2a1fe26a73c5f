"""The application object, its consoles, and what becomes of expected errors."""

from __future__ import annotations

import os

import typer
from rich.console import Console

from benchmarks.papers import FIRST

app = typer.Typer(
    help=(
        "Regenerate the tables of four federated-distillation papers. Start with: python -m"
        f" benchmarks reproduce {FIRST}"
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console(highlight=False)
if not console.is_terminal and "COLUMNS" not in os.environ:
    console.width = 200  # numbers that go to a file must not be cut
errors = Console(stderr=True, highlight=False)
