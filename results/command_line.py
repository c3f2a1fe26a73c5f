"""What the command lines have in common: how options are read, and what becomes of what cannot be
done: one line, and exit code 2.
"""

import contextlib
import errno
import io
import os
import re
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import typer
from typer.core import TyperGroup

from fedtables.results.files import RefusedError, check_name
from fedtables.results.numbers import MOST, MOST_WHOLE, finite_number, is_infinite, whole_number
from fedtables.results.sourcecode import PACKAGE

T = TypeVar("T")
REFUSED = 2
"""Exit code of a command that cannot be done as it is given, or of one whose output is lost."""
INTERRUPTED = 130
"""Exit code after Ctrl-C."""
WHOLE, NUMBER = "INTEGER", "FLOAT"
"""How the help calls what an option takes."""
NARROWEST = 20
"""Characters in a line of the narrowest terminal that can show anything."""
UsageError: Any = typer.BadParameter.__base__
"""Of the library that reads the options, whichever typer brings along."""


def suite_version() -> str:
    """`fedtables 1.2.3`, as it is installed."""
    return f"{PACKAGE} {metadata.version(PACKAGE)}"


def whole(least: int = 0, most: int = MOST_WHOLE) -> Callable[[Any], int]:
    """The `parser` of an option that takes a whole number in these bounds."""
    return _parser(lambda value: whole_number(value, least, most))


def number(least: float = 0, most: float = MOST, infinite: bool = False) -> Callable[[Any], float]:
    """The `parser` of an option that takes a number in these bounds, or infinity where that is
    said.
    """

    def read(value: Any) -> float:
        is_inf = infinite and is_infinite(str(value))
        return float("inf") if is_inf else finite_number(value, least, most)

    return _parser(read)


def _parser(read: Callable[[Any], T]) -> Callable[[Any], T]:
    """A `parser` whose ValueError is told as what is wrong with an option."""

    def parse(value: Any) -> T:
        try:
            return read(value)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    return parse


def path(value: Any, pipes: bool = False) -> Path:
    """The `parser` of an option that takes a file or folder, or `pipes` too: `~` is the user's
    home.
    """
    if not str(value):
        raise typer.BadParameter("it is empty; name a file or folder, . for this one")
    try:
        named = Path(value).expanduser()
        check_name(named)
        if named.exists() and not (pipes or named.is_file() or named.is_dir()):
            raise typer.BadParameter(f"{value} is neither a regular file nor a folder")
    except (OSError, RuntimeError, ValueError) as error:
        raise typer.BadParameter(f"{value}: {getattr(error, 'strerror', '') or error}") from None
    return named


def check_columns() -> None:
    """Forget what `COLUMNS` says where that is no width of a terminal, but nothing, 0 or a word."""
    columns = os.environ.get("COLUMNS", "")
    if not (re.fullmatch("[0-9]{1,4}", columns, re.ASCII) and int(columns) >= NARROWEST):
        os.environ.pop("COLUMNS", None)


class Commands(TyperGroup):
    """The commands of a command line: what one refuses is told in one line."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except RefusedError as error:
            refuse(str(error))
            raise typer.Exit(REFUSED) from error


def run(app: typer.Typer, interrupted: str = "", **extra: Any) -> NoReturn:
    """Run a command line and end the process: with the code of the command, or after one line with
    `REFUSED`; after Ctrl-C with 130 and what is said of it. Characters that a stream cannot show
    are replaced.

    Raises SystemExit.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    code = REFUSED
    try:
        code = app(standalone_mode=False, **extra) or 0
        if code == INTERRUPTED and interrupted:
            typer.echo(interrupted, err=True)
        if sys.stdout is not None:
            sys.stdout.flush()
    except UsageError as error:
        if type(error).__name__ != "NoArgsIsHelpError":  # that has printed the help
            refuse(f"{error.format_message()} (--help lists what there is)")
    except typer.Abort:
        refuse("aborted")
    except OSError as error:
        if error.errno == errno.EPIPE:  # nobody reads on, as behind `| head`
            code = 1
        else:
            place = error.filename or "an output, perhaps standard output,"
            refuse(f"{place} cannot be used: {error.strerror or error}")
        _drop_output()
    sys.exit(code)


def refuse(why: str) -> None:
    """Say on standard error, in one line, why a command is not done."""
    with contextlib.suppress(OSError):
        typer.echo(f"error: {' '.join(why.split())}", err=True)


def _drop_output() -> None:
    """Send what standard output still holds nowhere, or the interpreter would fail on it at its
    end.
    """
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
