"""Whether a spread over seeds is one of the division into clients, or of what else is drawn:
initial weights, who takes part, the order of batches. Rows of a table with both at seed 0, either
at another seed, and both, under `cpu` in bf16 as FedAD's results:

PYTHONPATH=. python docs/examples/seeds_apart.py [PROFILE [FOLDER [TABLE [ROWS
    [SEED or SETTING=VALUE ...]]]]]
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
from rich.console import Console

from benchmarks.publish.regeneration import regenerate
from benchmarks.tables import registry
from benchmarks.tables.selection import Selection, parse_overrides
from federation.training.execution import Execution

DIVISION, REST = ("partition",), ("weights", "sampling", "shuffling")

if __name__ == "__main__":
    usual = ("smoke", "results", "fedad/table4", "fedavg,feddf", "1")
    profile, folder, name, rows, *words = [*sys.argv[1:], *usual[len(sys.argv) - 1 :]]
    paper, table = registry.find_table(name)
    settings = parse_overrides([word for word in words if "=" in word], paper)
    seeds = [int(word) for word in words if "=" not in word]
    found = []
    for seed in seeds:
        both_at_zero = [()] if seed == seeds[0] else []  # the same for every other seed
        for axes in (*both_at_zero, DIVISION, REST, DIVISION + REST):
            points: list[tuple[str, str, int, float]] = []
            selection = Selection(
                profile,
                seeds=(seed if axes else 0,),
                only={"row": rows},
                overrides=settings,
                execution=Execution("bf16" if profile == "cpu" else "fp32"),
            )
            [run] = regenerate(
                Console(quiet=True),
                [(paper, replace(table, seed_axes=axes or DIVISION))],
                selection,
                jobs=1,
                fresh=True,
                results=Path(folder, f"seed{seed}", "-".join(axes) or "none"),
                log=lambda *point, taken=points: taken.append(point),
            )
            for cell in run.cells:
                [value, *_] = run.records[cell.key].measurements
                series = f"{value.metric}/global model"
                rounds = [100 * p[3] for p in points if p[:2] == (str(cell), series)]
                found.append(
                    {
                        "row": cell.row,
                        "column": cell.column,
                        "division": seed if "partition" in axes else 0,
                        "rest": seed if "weights" in axes else 0,
                        value.metric: value.value,
                        "last five rounds": sum(rounds[-5:]) / max(1, len(rounds[-5:])),
                    }
                )
    frame = pd.DataFrame(found).sort_values(["row", "column"], kind="stable")
    print(frame.round(2).to_string(index=False))
