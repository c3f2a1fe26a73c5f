"""`cards`: the page of all methods."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.commands.app import app, console
from benchmarks.tables import registry
from benchmarks.tables.request import Request, takes
from results.command_line import path
from results.files import COMMITTED, check_output, write_atomic


@app.command("cards")
@takes("plugins")
def write_cards(
    request: Request,
    results: Annotated[
        Path,
        typer.Option(parser=path, metavar="PATH", help="folder of results, whose league is quoted"),
    ] = COMMITTED,
    output: Annotated[
        Path, typer.Option(parser=path, metavar="FILE", help="the Markdown page")
    ] = Path("docs/methods.md"),
) -> None:
    """A card for each method: what it sends and promises, and what the league says of it."""
    from benchmarks.reporting.method_cards import cards_page
    from reports.pages.build import league_of

    check_output(output, [results])
    entries = registry.methods(request.plugins)
    write_atomic(output, cards_page(entries.values(), league_of(results)))
    console.print(f"wrote {output} with {len(entries)} methods", soft_wrap=True)
