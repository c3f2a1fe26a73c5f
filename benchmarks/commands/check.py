"""`check`: the contract of one method."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from benchmarks.commands.app import app, console
from benchmarks.commands.asked import import_plugins
from benchmarks.tables import registry
from benchmarks.tables.request import Request, takes
from benchmarks.tables.spec import SpecError
from results.command_line import refuse


@app.command("check")
@takes("plugins")
def check_method(
    request: Request,
    method: Annotated[str, typer.Argument(help="a method's name")],
) -> None:
    """The contract of one method: it learns, repeats, and keeps private data private."""
    entry = registry.find_method(method, request.plugins)
    import_plugins(request.plugins)
    from benchmarks.contract.promises import CHECKS
    from benchmarks.contract.verdicts import KEPT, judge
    from benchmarks.running.execute import prepare_device
    from federation.execution import DEFAULT

    prepare_device("cpu", 1, DEFAULT)
    console.print(f"{escape(method)}: {len(CHECKS)} promises, each with a small federation")
    broken = 0
    try:
        for verdict in judge(entry):
            if verdict.word == KEPT:
                console.print(f"[green]{KEPT}[/]       {escape(verdict.promise)}", soft_wrap=True)
                continue
            broken += 1
            colour = "red" if verdict.word == "broken" else "yellow"
            finding = f"{verdict.promise} {verdict.finding} ({verdict.place})"
            console.print(f"[{colour}]{verdict.word:10}[/] {escape(finding)}", soft_wrap=True)
    except SpecError as error:
        refuse(str(error))
        raise typer.Exit(1) from error
    if broken:
        raise typer.Exit(1)
    console.print(f"{escape(method)} keeps the contract")
