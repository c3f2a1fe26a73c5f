"""`show`: published numbers and the protocol card."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table as RichTable

from benchmarks.commands.app import app, console
from benchmarks.tables import registry
from benchmarks.tables.request import Request, takes
from results import published


@app.command("show")
@takes("profile", "protocol")
def show_table(request: Request, table: Annotated[str, typer.Argument(help="paper/table")]) -> None:
    """Published numbers of a table, and its protocol card with every setting's source."""
    from benchmarks.reporting import cards

    if table not in registry.all_tables():
        registry.find_table(table)
    cells = published.published_table(table)
    columns = list(dict.fromkeys(cell.column for cell in cells))
    rows = list(dict.fromkeys(cell.row for cell in cells))
    metrics = list(dict.fromkeys(cell.metric for cell in cells))
    for metric in metrics:
        values = {(cell.row, cell.column): cell for cell in cells if cell.metric == metric}
        title = f"{table}: published {metric}"
        # The longer side runs down the page.
        if len(rows) > len(columns):
            texts = {row: {c: _text(values.get((row, c))) for c in columns} for row in rows}
            drawn = published_tables(title, "row", texts)
        else:
            texts = {c: {row: _text(values.get((row, c))) for row in rows} for c in columns}
            drawn = published_tables(title, "column", texts)
        for part in drawn:
            console.print(part)
    paper, _, key = table.partition("/")
    for claim in published.claims(paper):
        if claim.table == key:
            console.print(
                f"claim {claim.id}: {escape(claim.claim)} (in print: {claim.holds_in_print},"
                f" {claim.cells or 'no numbers'})"
            )
    spec = registry.all_tables()[table]
    if spec is not None:
        card = cards.terminal(registry.papers()[paper], spec, request.profile, request.protocol)
        console.print(card if fits(card) else cards.listed(card))
        for line in cards.table_settings(spec):
            console.print(escape(line))
        for note in registry.papers()[paper].notes:
            console.print(f"note: {note}")
    else:
        console.print(f"{table} is not yet reproducible; its published numbers are data already.")


def _text(cell: published.PublishedCell | None) -> str:
    """A printed cell: `0.98 ± 0.01`, a dash for a printed dash, nothing for none."""
    if cell is None:
        return ""
    return "–" if cell.value is None else f"{cell.value}" + (f" ± {cell.std}" if cell.std else "")


def fits(table: RichTable) -> bool:
    """Whether the terminal shows a table without a break within a word."""
    endless = console.options.update(width=10**6)
    return console.measure(table, options=endless).minimum <= console.width


def published_tables(
    title: str, heading: str, texts: Mapping[str, Mapping[str, str]]
) -> list[RichTable]:
    """Texts by line and column as one table, or as several with a part of the columns each, where
    the terminal is too narrow.
    """
    lines = {name: line for name, line in texts.items() if any(line.values())}
    across = list(next(iter(lines.values()), {}))
    drawn = RichTable(title=title, title_justify="left")
    drawn.add_column(heading, overflow="fold")
    for name in across:
        widest = max(len(line[name]) for line in lines.values())
        drawn.add_column(name, overflow="fold", min_width=widest)
    for name, line in lines.items():
        drawn.add_row(name, *line.values())
    if len(across) < 2 or fits(drawn):
        return [drawn]
    half = len(across) // 2
    return [
        table
        for part in (across[:half], across[half:])
        for table in published_tables(
            title, heading, {name: {c: line[c] for c in part} for name, line in lines.items()}
        )
    ]
