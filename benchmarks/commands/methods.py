"""One method, or all: `check` and `cards`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from fedtables.benchmarks.commands.app import console
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.request import Request, takes
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.results.command_line import path, refuse
from fedtables.results.files import COMMITTED, check_output, write_atomic


@takes("plugins")
def check_method(
    request: Request,
    method: Annotated[str, typer.Argument(help="name of the method")],
) -> None:
    """Check one method against the contract: it learns, repeats, keeps private data private."""
    entry = registry.find_method(method)
    from fedtables.benchmarks.contract.promises import CHECKS, KEPT, judge
    from fedtables.benchmarks.running.execute import prepare_device
    from fedtables.federation.execution import DEFAULT

    prepare_device("cpu", 1, DEFAULT)
    console.print(
        f"{escape(entry.name)}: {len(CHECKS)} promises, each tested on a small federation"
    )
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
    console.print(f"{escape(entry.name)} keeps the contract")


@takes("plugins")
def write_cards(
    request: Request,
    results: Annotated[
        Path,
        typer.Option(
            parser=path, metavar="PATH", help="folder of results with the league to quote"
        ),
    ] = COMMITTED,
    output: Annotated[
        Path, typer.Option(parser=path, metavar="FILE", help="the Markdown page")
    ] = Path("docs/reference/methods.md"),
) -> None:
    """Write a page with a card for each method: what it sends, its settings, its league results."""
    from fedtables.benchmarks.reporting.method_cards import cards_page
    from fedtables.reports.pages.build import league_of

    check_output(output, [results])
    entries = registry.methods()
    write_atomic(output, cards_page(entries.values(), league_of(results)))
    console.print(f"wrote {output} with {len(entries)} methods", soft_wrap=True)
