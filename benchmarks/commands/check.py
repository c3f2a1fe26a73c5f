"""`check`: the contract of one method."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from benchmarks.commands.app import app, console
from benchmarks.commands.asked import import_plugins
from benchmarks.commands.options import Plugins
from benchmarks.tables import registry
from benchmarks.tables.spec import SpecError
from results.command_line import refuse


@app.command("check")
def check_method(
    method: Annotated[str, typer.Argument(help="a method's name")],
    plugin: Plugins = None,
) -> None:
    """The contract of one method: it learns, repeats, and keeps private data private."""
    plugins = [str(path) for path in plugin or []]
    entry = registry.find_method(method, plugins)
    import_plugins(plugins)
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
