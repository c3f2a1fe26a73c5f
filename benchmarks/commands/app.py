"""The application object, its consoles, and what becomes of expected errors."""

import os
from typing import Annotated

import typer
from rich.console import Console

from fedtables.benchmarks.papers import FIRST
from fedtables.results.command_line import Commands, check_columns, suite_version

app = typer.Typer(
    help=(
        "Regenerate the tables of four federated-distillation papers. Start with: fedtables"
        f" reproduce {FIRST}"
    ),
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
check_columns()
console = Console(highlight=False, emoji=False)
if not console.is_terminal and "COLUMNS" not in os.environ:
    console.width = 200  # numbers that go to a file must not be cut
errors = Console(stderr=True, highlight=False, emoji=False)


@app.callback(invoke_without_command=True)
def suite(
    version_asked: Annotated[
        bool, typer.Option("--version", help="show the version of the suite")
    ] = False,
) -> None:
    if version_asked:
        typer.echo(suite_version())
        raise typer.Exit
