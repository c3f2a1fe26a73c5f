"""The application object, its consoles, and what becomes of expected errors."""

import os
from typing import Annotated

import typer
from rich.console import Console

from fedtables.benchmarks.papers import FIRST
from fedtables.results.command_line import Commands, check_columns, suite_version

VARIABLE = "_FEDTABLES_COMPLETE"
"""The environment variable by which a shell asks for completions: nothing is run then."""

BASH = """\
_fedtables() {
    [[ "${COMP_WORDS[1]} ${COMP_WORDS[2]}" == "-m benchmarks" && $COMP_CWORD -ge 3 ]] || return 0
    local IFS=$'\\n'
    COMPREPLY=( $(COMP_WORDS="${COMP_WORDS[*]:2}" COMP_CWORD=$((COMP_CWORD - 2)) \\
                  _FEDTABLES_COMPLETE=complete_bash "$1" -m benchmarks 2>/dev/null) )
}
complete -o default -F _fedtables python python3
"""
"""For bash, as typer's own script is for a program with a name of its own; other calls of python go
on completing the names of files."""

app = typer.Typer(
    help=(
        "Regenerate the tables of four federated-distillation papers. Start with: python -m"
        f" benchmarks reproduce {FIRST}"
    ),
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
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
    completion_asked: Annotated[
        bool,
        typer.Option("--show-completion", help="show what completes commands and tables in bash"),
    ] = False,
) -> None:
    if version_asked:
        typer.echo(suite_version())
    if completion_asked:
        typer.echo(BASH)
    if version_asked or completion_asked:
        raise typer.Exit
