"""`sweep`: a table over privacy budgets."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from benchmarks.commands.app import app
from benchmarks.commands.asked import selected
from benchmarks.commands.reproduce import run_tables
from benchmarks.tables import registry
from benchmarks.tables.request import Request, takes


@app.command("sweep")
@takes(
    *("profile", "only", "methods", "seeds", "settings", "plugins", "require_real"),
    *("jobs", "device", "threads", "ray", "num_cpus", "num_gpus", "ray_cache"),
    *("fresh", "results", "replace"),
)
def sweep_budgets(
    request: Request,
    table: Annotated[str, typer.Argument(help="paper/table")],
    epsilon: Annotated[str, typer.Option(help="privacy budgets, as in 1,3,10")] = "3.5,6,7.7,10",
) -> None:
    """A table's rows over privacy budgets, and without one: CSV, and a plot over epsilon."""
    from benchmarks.tables.selection import listed
    from benchmarks.tables.sweep import parse_epsilons, swept
    from federation.execution import DEFAULT

    # Private cells train without extras, and those without a budget are compared with them.
    selection = replace(selected(request, [table]), execution=DEFAULT)
    paper, spec = registry.find_table(table)
    derived, left_out = swept(paper, spec, selection, parse_epsilons(epsilon))
    wanted = (selection.only or {}).get("row")
    remarks = [
        f"left out {row.title}: {row.method} has no private form"
        for row in left_out
        if wanted is None or row.key in {*selection.add, *listed(wanted, ())}
    ]
    swept_selection = replace(selection, add=(), drop=())
    run_tables([(paper, derived)], swept_selection, request, remarks=remarks)
