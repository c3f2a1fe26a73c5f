"""Numbers and properties of methods on equal terms, with their ranks, drawn against what they
cost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from metrics.names import MEGABYTES_DOWN, MEGABYTES_UP
from reports.measures.final import PROPERTIES as EXCHANGED
from reports.measures.final import crossed
from reports.measures.kind import Kind
from reports.tables.ranking import spots
from reports.tables.standings import ACCURACY, Standing, Standings, ranking, standings_of
from reports.tables.table import ShownTable
from results.record import OK

PROPERTIES: Mapping[str, str] = {
    **EXCHANGED,
    "networks-differ": "the fit goes through with clients of two kinds of network",
}


class Scorecard(Kind):
    """A table of numbers and properties; its picture has a panel for each condition, of accuracy
    against bytes.
    """

    ranks_first = True

    def brief(self, lines: pd.DataFrame) -> pd.DataFrame:
        """Accuracy, and what failed."""
        return lines[(lines["metric"] == ACCURACY) | (lines["status"] != OK)]

    def remarks(self, table: ShownTable) -> list[str]:
        return [
            ranked(standings_of([table])),
            *(f"{name}: {meaning}" for name, meaning in PROPERTIES.items()),
            *crossed(table.layout.rows, table.records),
        ]

    def draw(self, table: ShownTable, path: Path) -> None:
        from reports.drawing.palette import looks_of
        from reports.drawing.plots_ranking import Plane, front_plot

        found = standings_of([table])
        planes = [
            Plane(
                f"{condition.column}, public={condition.public}",
                "MB sent, both ways",
                "Accuracy (%)",
                spots(
                    (
                        method.row,
                        _value(found, method, MEGABYTES_UP, condition.key)
                        + _value(found, method, MEGABYTES_DOWN, condition.key),
                        _value(found, method, ACCURACY, condition.key),
                        condition.key in found.cut_short(method.row, ACCURACY),
                    )
                    for method in found.methods
                    if method.ranked
                ),
            )
            for condition in found.conditions
        ]
        if planes:
            layout = table.layout
            front_plot(planes, layout.rows, looks_of(layout), path, layout)


def _value(found: Standings, method: Standing, metric: str, key: str) -> float:
    return float(found.of(method.row, metric)["value"].get(key, math.nan))


def ranked(found: Standings) -> str:
    """Mean ranks in one text, and which differences they decide."""
    ranks = ranking(found)
    titles = {method.row: method.title for method in found.methods}
    if len(ranks["mean_rank"]) < 2:
        return "no two methods were run in the same conditions: no ranks"
    order = ", ".join(f"{titles[row]} {rank:.2f}" for row, rank in ranks["mean_rank"].items())
    apart = ranks["critical_difference"]
    left_out = {"lack a condition": ranks["not_ranked"], "break the contract": ranks["broken"]}
    return (
        f"mean ranks of accuracy over {ranks['conditions']} conditions: {order}; two that differ by"
        f" less than {apart:.2f} are not told apart (Nemenyi, 5 %)"
        + "".join(
            f"; not ranked, for they {why}: {', '.join(titles[row] for row in rows)}"
            for why, rows in left_out.items()
            if rows
        )
    )


KINDS = {"scorecard": Scorecard()}
