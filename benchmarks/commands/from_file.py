"""`--config`, a command's options from a file, and `--print-config`, the file of a command."""

import functools
import inspect
import time
from collections.abc import Callable, Sequence
from dataclasses import Field, dataclass
from pathlib import Path
from typing import Any

import typer

from fedtables.benchmarks.tables.request import key_of, option, read_option, switch, takes
from fedtables.benchmarks.tables.runfile import over, read_runs, run_text, started
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.results.command_line import path
from fedtables.results.files import RefusedError

Fields = Sequence[Field[Any]]
FAILED_CELLS, OUT_OF_TIME = 1, 75
"""Exit codes of a run: of whose cells some failed; that has to go on (EX_TEMPFAIL of sysexits)."""


def _file(value: Any) -> Path:
    return path(value, pipes=True)


@dataclass(frozen=True)
class FromFile:
    """Where options come from beside the command line; the help texts say what each means."""

    config: Path | None = option(  # noqa: RUF009
        None,
        lambda value: None if value is None else _file(value),
        "take options from a TOML file; options on the command line win",
        on_command_line=Path | None,
        parser=_file,
        metavar="FILE",
    )
    print_config: bool = switch(
        "print this command as a TOML file, and run nothing", "--print-config"
    )


def configured(*, disregards: Fields = ()) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator for a command that `takes` options: they may come from a file, which may have the
    options that the command `disregards` as well.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        options: Fields = (*function.options, *disregards)  # type: ignore[attr-defined]

        @functools.wraps(function)
        def run(own: FromFile, ctx: typer.Context, **values: Any) -> None:
            runs = asked_by(ctx, own.config, options)
            if own.print_config:
                if len(runs) > 1:
                    raise SpecError(f"--print-config prints one run, and {own.config} has several")
                typer.echo(_text(str(ctx.info_name), runs[0], options), nl=False)
                return
            in_order(
                [
                    {**values, **{name: asked[name] for name in values.keys() & asked.keys()}}
                    for asked in runs
                ],
                function,
            )

        first = [
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=kind)
            for name, kind in (("own", FromFile), ("ctx", typer.Context))
        ]
        taken = inspect.signature(function).parameters.values()
        run.__signature__ = inspect.Signature([*first, *taken])  # type: ignore[attr-defined]
        return takes(of=FromFile)(run)

    return decorate


def in_order(runs: Sequence[dict[str, Any]], function: Callable[..., None]) -> None:
    """One run after another; `minutes` are those of all. What fails in one, or is refused, does not
    keep the others from running.
    """
    if len(runs) == 1:
        function(**runs[0])
        return
    begun, failed = time.monotonic(), False
    for number, asked in enumerate(runs, 1):
        typer.echo(f"run {number} of {len(runs)}")
        passed = (time.monotonic() - begun) / 60
        if asked.get("minutes") and number > 1:
            if passed >= asked["minutes"]:
                raise typer.Exit(OUT_OF_TIME)
            asked["minutes"] -= passed
        try:
            function(**asked)
        except RefusedError as error:
            typer.echo(f"run {number} is refused: {error}", err=True)
            failed = True
        except typer.Exit as end:
            if end.exit_code != FAILED_CELLS:
                raise
            failed = True
    if failed:
        raise typer.Exit(FAILED_CELLS)


def asked_by(ctx: typer.Context, config: Path | None, options: Fields) -> list[dict[str, Any]]:
    """What a command line and each run of its file ask for, by name. Raises SpecError for a file
    that cannot be used, and for a value that an option does not take.
    """
    given = {
        about.name: read_option(about, ctx.params[about.name])
        for about in options
        if (source := ctx.get_parameter_source(about.name)) and source.name == "COMMANDLINE"
    }
    return [over(run, given) for run in (read_runs(config, options) if config else [{}])]


def _text(command: str, asked: dict[str, Any], options: Fields) -> str:
    """The file, in the options' order. Its paths are absolute: it may lie anywhere."""
    if not asked:
        raise SpecError("--print-config: name a table or an option to print")
    here = Path().absolute()
    by_key = {
        key_of(about): started(about, asked[about.name], here)
        for about in options
        if about.name in asked
    }
    return run_text(command, by_key)
