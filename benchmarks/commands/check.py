"""`check`: the contract of one method."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from benchmarks.commands.app import app, console
from benchmarks.commands.options import Plugins
from benchmarks.tables import registry
from results.command_line import refuse


@app.command("check")
def check_method(
    method: Annotated[str, typer.Argument(help="a method's name")],
    plugin: Plugins = None,
) -> None:
    """The contract of one method: it learns, repeats, and keeps private data private."""
    plugins = [str(path) for path in plugin or []]
    entry = registry.find_method(method, plugins)
    from benchmarks.contract import (
        CHECKS,
        BrokenContractError,
        NotJudgedError,
        contract_method,
        place,
    )
    from benchmarks.running.execute import prepare_device
    from federation.training.execution import DEFAULT

    prepare_device("cpu", 1, DEFAULT)
    subject = contract_method(entry)
    console.print(f"{escape(method)}: {len(CHECKS)} promises, each with a small federation")
    broken = 0
    for contract_check in CHECKS:
        promise = " ".join(str(contract_check.__doc__).split("\n\n")[0].split())
        try:
            contract_check(subject)
            console.print(f"[green]kept[/]       {promise}", soft_wrap=True)
        except (BrokenContractError, NotJudgedError) as error:
            broken += 1
            word = "[red]broken[/]    "
            if isinstance(error, NotJudgedError):
                word = "[yellow]not judged[/]"
            finding = f"{promise} {error} ({place(subject)})"
            console.print(f"{word} {escape(finding)}", soft_wrap=True)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0][:500]
            refuse(f"{method} does not run: {reason} ({place(subject, error)})")
            raise typer.Exit(1) from error
    if broken:
        raise typer.Exit(1)
    console.print(f"{escape(method)} keeps the contract")
