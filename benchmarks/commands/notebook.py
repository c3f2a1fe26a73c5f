"""`benchmarks.reproduce`: a table from Python, as `python -m benchmarks reproduce` makes it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd
from rich.console import Console

from benchmarks.commands.asked import (
    check_execution,
    make_cluster,
    make_selection,
    parse_settings,
)
from benchmarks.publish.regeneration import regenerate
from benchmarks.running.runner import Log
from benchmarks.tables import registry
from benchmarks.tables.spec import Scalar, usual_device
from results.files import RUNS
from results.frame import tidy, with_keys

Values = str | float | Iterable[str | float]
"""One value of a key, or several."""


def reproduce(
    table: str,
    *,
    profile: str = "smoke",
    protocol: str = "paper",
    only: Mapping[str, Values] | None = None,
    methods: str = "",
    seeds: Iterable[int] = (0,),
    settings: Mapping[str, Scalar] | None = None,
    plugins: Iterable[Path | str] = (),
    jobs: int = 0,
    device: str = "",
    threads: int = 1,
    precision: str = "",
    compiled: str = "",
    stacked: int = 1,
    require_real: bool = False,
    fresh: bool = False,
    results: Path | str = RUNS,
    replace: bool = False,
    quiet: bool = False,
    log: Log | None = None,
) -> pd.DataFrame:
    """Regenerate `paper/table` and return its cells: a line per cell, metric and seed, with the
    published value beside the measured one (`results.frame.COLUMNS`), and a column for every key of
    the table's columns (`results.frame.with_keys`).

    Arguments are the command's options. `only` maps keys to the values wanted, as in
    `{"dataset": "mnist", "row": ["global-avg", "global-dlad"]}`; `settings` are those of `--set`.
    The table's files are written to `results`, and its cells kept in the cache, as by the command
    (`replace` lets them lose cells);
    `quiet` prints nothing. `log(cell, series, step, value)` is told what cells show while they run:
    losses and metrics by epoch or round, bytes and epsilon by round. A cell that fails is a line
    with `status` `failed` and the reason.

    Cells run in processes of their own, which import nothing of the notebook or script.

    Raises SpecError, DataError or ResultsError, before anything runs, for what cannot be run.
    """
    device = device or usual_device(profile)
    selection = make_selection(
        profile,
        protocol,
        [f"{key}={value}" for key, values in (only or {}).items() for value in _several(values)],
        methods,
        ",".join(_several(seeds)),
        device,
        threads,
        require_real,
        [Path(plugin) for plugin in plugins],
        precision,
        compiled,
        stacked,
    )
    pairs = [f"{name}={value}" for name, value in (settings or {}).items()]
    selection = dataclasses.replace(
        selection, overrides=parse_settings([table], pairs, selection.plugins), may_lose=replace
    )
    check_execution(selection.execution, device)
    make_cluster("", 0, None, "", device, threads)
    console = Console(highlight=False, quiet=quiet)
    chosen = [registry.find_table(table)]
    [run] = regenerate(console, chosen, selection, jobs, fresh, Path(results), log=log)
    return with_keys(
        tidy(run.records[cell.key] for cell in run.cells).assign(variant=selection.variant)
    )


def _several(values: Values) -> list[str]:
    """One value, or each of several."""
    return [*map(str, [values] if isinstance(values, str | float | int) else values)]
