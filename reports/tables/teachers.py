"""Which teachers suit a target task: how their similarity goes with their transfer accuracy, and
which were selected when.

Tables of the measure `transferability` (FedSA's Table 3) have a row per teacher and two metrics,
those of the measure `selection` (its Figure 4a) the column keys `selection` and `teacher`, both
counted from 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from metrics.correlation import pearson, spearman
from metrics.names import facts
from reports.tables.table import Layout, heading
from results.published import format_column, parse_column, published_table
from results.record import OK, Record
from results.store import PLACE

TRANSFERABILITY, SELECTED = "transferability", "selected"
"""Metrics of a selection: a teacher's score, and how often it was drawn."""
LEAST = 3
"""Teachers below which there is no correlation: that of two is 1 or -1, whatever they are."""


@dataclass(frozen=True)
class Correlation:
    """How two metrics go together over teachers, in one column; coefficients are means over
    seeds.
    """

    spearman: float
    """Not a number where a metric is the same for all teachers."""
    pearson: float
    teachers: int
    seeds: int = 1

    @property
    def coefficients(self) -> tuple[str, str]:
        """Spearman's and Pearson's as text, with two digits."""
        first, second = (
            "undefined" if math.isnan(value) else f"{value:.2f}"
            for value in (self.spearman, self.pearson)
        )
        return first, second

    @property
    def means(self) -> str:
        """That the coefficients are means over several seeds; empty for one."""
        return f"mean over {self.seeds} seeds of each seed's own" if self.seeds > 1 else ""


def correlations(records: Sequence[Record], metrics: Sequence[str]) -> dict[str, Correlation]:
    """By column the correlation of two metrics over the rows that every seed has, seed by seed, and
    its mean.
    """
    values: dict[str, dict[int, dict[str, dict[str, float]]]] = {}
    for record in records:
        for m in record.measurements if record.status == OK else ():
            if m.metric in metrics and isinstance(m.value, float):
                seeds = values.setdefault(f"{record.column} {m.column}".strip(), {})
                seeds.setdefault(record.seed, {}).setdefault(record.row, {})[m.metric] = m.value
    by_column = {
        column: _over_seeds(list(seeds.values()), metrics) for column, seeds in values.items()
    }
    return {
        column: correlation for column, correlation in by_column.items() if correlation is not None
    }


def printed_correlations(table: str, metrics: Sequence[str]) -> dict[str, Correlation]:
    """By column the correlation of the values that `paper/table` prints."""
    values: dict[str, dict[str, dict[str, float]]] = {}
    for cell in published_table(table):
        if cell.metric in metrics and isinstance(cell.value, float):
            values.setdefault(cell.column, {}).setdefault(cell.row, {})[cell.metric] = cell.value
    by_column = {column: _over_seeds([rows], metrics) for column, rows in values.items()}
    return {
        column: correlation for column, correlation in by_column.items() if correlation is not None
    }


def _over_seeds(
    seeds: Sequence[Mapping[str, Mapping[str, float]]], metrics: Sequence[str]
) -> Correlation | None:
    whole = [{row for row, values in rows.items() if len(values) == len(metrics)} for rows in seeds]
    rows = sorted(set.intersection(*whole))
    if len(rows) < LEAST:
        return None
    pairs = [tuple([values[row][metric] for row in rows] for metric in metrics) for values in seeds]
    rho, r = (
        math.fsum(f(first, second) for first, second in pairs) / len(pairs)
        for f in (spearman, pearson)
    )
    return Correlation(rho, r, len(rows), len(seeds))


def sentences(
    layout: Layout, measured: Mapping[str, Correlation], metrics: Sequence[str]
) -> list[str]:
    """What the correlations are, measured and published, a sentence for each column."""
    printed = printed_correlations(layout.key, metrics)
    first, second = (facts(metric).title.lower() for metric in metrics)
    texts = []
    for column, ours in measured.items():
        rho, r = ours.coefficients
        size = "; ".join(filter(None, (f"n = {ours.teachers} teachers", ours.means)))
        text = (
            f"{heading(parse_column(column))}: {first} and {second}: Spearman rho = {rho}, Pearson"
            f" r = {r} ({size})"
        )
        if column in printed:
            rho, r = printed[column].coefficients
            text += f"; published rho = {rho}, r = {r} (n = {printed[column].teachers})"
        texts.append(text)
    return texts


def totals(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines of a table: of every teacher its mean transferability over selections, and how
    often it was drawn in all.

    The columns lose their key `selection`, the lines their spread over seeds, which the sums do not
    tell.
    """
    keys = lines["column"].map(parse_column)
    named = keys.map(lambda pairs: "selection" in pairs).astype(bool)
    is_selection = named & (lines["status"] == OK)
    places = [
        format_column({key: v for key, v in pairs.items() if key != "selection"}) for pairs in keys
    ]
    of_teacher = lines.assign(column=places)[is_selection].groupby(PLACE, sort=False)
    sums = of_teacher["value"].agg(lambda values: math.fsum(map(float, values)))
    shown = of_teacher.last().assign(
        value=[
            repr(total if metric == SELECTED else total / count)
            for (_, _, metric), total, count in zip(
                sums.index, sums.tolist(), of_teacher.size(), strict=True
            )
        ],
        std="",
    )
    return pd.concat([shown.reset_index(), lines[~is_selection]], ignore_index=True)
