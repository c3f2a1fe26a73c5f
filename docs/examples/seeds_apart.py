"""Whether a spread over seeds is one of the division into clients, or of what else is drawn:
initial weights, who takes part, the order of batches. Rows of a table with both at seed 0, either
at another seed, and both, under `cpu` in bf16 as FedAD's results:

PYTHONPATH=. python docs/examples/seeds_apart.py [PROFILE [FOLDER [TABLE [ROWS
    [SEED or SETTING=VALUE ...]]]]]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from benchmarks.commands.regeneration import regenerate
from benchmarks.tables import registry
from benchmarks.tables.request import Request, read_settings
from benchmarks.tables.selection import Selection, typed_settings
from benchmarks.tables.spec import Paper, Table
from federation.execution import Execution

DIVISION, REST = ("partition",), ("weights", "sampling", "shuffling")


def runs(
    table: tuple[Paper, Table], axes: Sequence[str], selection: Selection, folder: Path
) -> list[dict[str, Any]]:
    """The selected rows with the seeds of `axes` as selected and the others at 0: for each cell its
    value and the mean over the last five rounds.
    """
    points: list[tuple[str, str, int, float]] = []
    paper, whole = table
    [run] = regenerate(
        Console(quiet=True),
        [(paper, replace(whole, seed_axes=tuple(axes)))],
        selection,
        Request(jobs=1, fresh=True, results=folder),
        log=lambda *point: points.append(point),
    )
    found = []
    for cell in run.cells:
        [value, *_] = run.records[cell.key].measurements
        series = f"{value.metric}/global model"
        last = [100 * p[3] for p in points if p[:2] == (str(cell), series)][-5:]
        found.append({"row": cell.row, "column": cell.column, value.metric: value.value})
        found[-1]["last five rounds"] = sum(last) / max(1, len(last))
    return found


def main(arguments: Sequence[str]) -> None:
    """Print the runs for each group of axes at each seed."""
    usual = ("smoke", "runs", "fedad/table4", "fedavg,feddf", "1")
    profile, folder, name, rows, *words = [*arguments, *usual[len(arguments) :]]
    table = registry.find_table(name)
    selection = Selection(
        profile,
        only={"row": rows},
        overrides=typed_settings(read_settings([word for word in words if "=" in word]), table[0]),
        execution=Execution("bf16" if profile == "cpu" else "fp32"),
    )
    seeds = [int(word) for word in words if "=" not in word]
    moved = DIVISION, REST, DIVISION + REST
    at_zero: tuple[int, tuple[str, ...]] = 0, DIVISION  # the same beside every other seed
    found = []
    for seed, axes in (at_zero, *((seed, axes) for seed in seeds for axes in moved)):
        place = Path(folder, f"seed{seed}", "-".join(axes))
        at = {"division": seed * ("partition" in axes), "rest": seed * ("weights" in axes)}
        chosen = replace(selection, seeds=(seed,))
        found += [at | run for run in runs(table, axes, chosen, place)]
    frame = pd.DataFrame(found).set_index(["row", "column"]).sort_index(kind="stable")
    print(frame.round(2).reset_index().to_string(index=False))


if __name__ == "__main__":
    main(sys.argv[1:])
