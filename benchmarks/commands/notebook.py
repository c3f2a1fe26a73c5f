"""`benchmarks.reproduce`: a table from Python, as `python -m benchmarks reproduce` makes it."""

from __future__ import annotations

import pandas as pd
from rich.console import Console

from benchmarks.commands.asked import check_execution, make_cluster, selected
from benchmarks.commands.regeneration import regenerate
from benchmarks.running.runner import Log
from benchmarks.tables import registry
from benchmarks.tables.request import Request, takes
from results.frame import tidy, with_keys


@takes(typed=True)
def reproduce(
    request: Request, table: str, *, quiet: bool = False, log: Log | None = None
) -> pd.DataFrame:
    """Regenerate `paper/table` and return its cells: a line per cell, metric and seed, with the
    published value beside the measured one (`results.frame.COLUMNS`), and a column for every key of
    the table's columns (`results.frame.with_keys`).

    Arguments are the command's options. `only` maps keys to the values wanted, as in
    `{"dataset": "mnist", "row": ["global-avg", "global-dlad"]}`; `settings` maps the names of
    `--set` to values. The table's files are written to `results`, and its cells kept in the cache,
    as by the command (`replace` lets them lose cells);
    `quiet` prints nothing. `log(cell, series, step, value)` is told what cells show while they run:
    losses and metrics by epoch or round, bytes and epsilon by round. A cell that fails is a line
    with `status` `failed` and the reason.

    Cells run in processes of their own, which import nothing of the notebook or script.

    Raises SpecError, DataError or ResultsError, before anything runs, for what cannot be run.
    """
    selection = selected(request, [table])
    check_execution(selection.execution, selection.device)
    console = Console(highlight=False, quiet=quiet)
    chosen = [registry.find_table(table)]
    [run] = regenerate(console, chosen, selection, request, make_cluster(request), log)
    finished = [run.records[cell.key] for cell in run.cells if cell.key in run.records]
    return with_keys(tidy(finished).assign(variant=selection.variant))
