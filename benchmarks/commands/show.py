"""`show`: published numbers and the protocol card."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table as RichTable

from benchmarks.commands.app import app, console
from benchmarks.commands.asked import choice
from benchmarks.commands.options import Profile, Protocol
from benchmarks.tables import bandwidth, registry
from benchmarks.tables.spec import PROFILES, PROTOCOLS
from results import published


@app.command("show")
def show_table(
    table: Annotated[str, typer.Argument(help="paper/table")],
    profile: Profile = "smoke",
    protocol: Protocol = "paper",
) -> None:
    """Published numbers of a table, and its protocol card with every setting's source."""
    from benchmarks.tables import cards

    choice("--profile", profile, PROFILES)
    choice("--protocol", protocol, PROTOCOLS)
    if table not in registry.all_tables():
        registry.find_table(table)
    cells = published.published_table(table)
    columns = list(dict.fromkeys(cell.column for cell in cells))
    rows = list(dict.fromkeys(cell.row for cell in cells))
    metrics = list(dict.fromkeys(cell.metric for cell in cells))
    for metric in metrics:
        values = {(cell.row, cell.column): cell for cell in cells if cell.metric == metric}
        drawn = RichTable(title=f"{table}: published {metric}", title_justify="left")
        # The longer side runs down the page.
        down, across = (rows, columns) if len(rows) > len(columns) else (columns, rows)
        for heading in ("row" if down is rows else "column", *across):
            drawn.add_column(heading, overflow="fold")
        for name in down:
            shown = [
                values.get((name, other) if down is rows else (other, name)) for other in across
            ]
            if any(shown):
                drawn.add_row(
                    name,
                    *(
                        (
                            ""
                            if c is None
                            else (
                                "–"
                                if c.value is None
                                else f"{c.value}" + (f" ± {c.std}" if c.std else "")
                            )
                        )
                        for c in shown
                    ),
                )
        console.print(drawn)
    paper, _, key = table.partition("/")
    for claim in published.claims(paper):
        if claim.table == key:
            console.print(
                f"claim {claim.id}: {escape(claim.claim)} (in print: {claim.holds_in_print},"
                f" {claim.cells or 'no numbers'})"
            )
    spec = registry.all_tables()[table]
    if spec is not None:
        console.print(cards.terminal(registry.papers()[paper], spec, profile, protocol))
        for line in cards.table_settings(spec):
            console.print(escape(line))
        for note in registry.papers()[paper].notes:
            console.print(f"note: {note}")
    else:
        known = (
            f" `python -m benchmarks plan {table}` computes its bytes."
            if bandwidth.accounts(table)
            else ""
        )
        console.print(
            f"{table} is not yet reproducible; its published numbers are data already.{known}"
        )
