"""Which teachers suit a target task: how their similarity goes with their transfer accuracy, and
which were selected when.

Tables of the measure `transferability` (FedSA's Table 3) have a row per teacher and two metrics,
those of the measure `selection` (its Figure 4a) the column keys `selection` and `teacher`, both
counted from 1.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from fedtables.metrics.correlation import pearson, spearman
from fedtables.metrics.names import facts
from fedtables.reports.tables.table import Layout, heading
from fedtables.results.published import parse_column, published_table, without
from fedtables.results.record import OK, Record
from fedtables.results.store import PLACE

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
    done = (record for record in records if record.status == OK)
    return _by_column(
        (
            (f"{r.column} {m.column}".strip(), r.row, r.seed, m.metric, m.value)
            for r in done
            for m in r.measurements
        ),
        metrics,
    )


def printed_correlations(table: str, metrics: Sequence[str]) -> dict[str, Correlation]:
    """By column the correlation of the values that `paper/table` prints."""
    cells = published_table(table)
    return _by_column(((c.column, c.row, 0, c.metric, c.value) for c in cells), metrics)


def _by_column(
    values: Iterable[tuple[str, str, int, str, object]], metrics: Sequence[str]
) -> dict[str, Correlation]:
    """The correlations of values, each with its column, row, seed and metric."""
    known = [value for value in values if value[3] in metrics and isinstance(value[4], float)]
    frame = pd.DataFrame(known, columns=["column", "row", "seed", "metric", "value"])
    found = {}
    for column, of_it in frame.groupby("column", sort=False):
        wide = of_it.pivot(index="row", columns=["seed", "metric"], values="value").dropna()
        seeds = of_it["seed"].unique()
        if len(wide) < LEAST or len(wide.columns) < len(seeds) * len(metrics):
            continue
        pairs = [[wide[seed, metric].tolist() for metric in metrics] for seed in seeds]
        rho, r = (math.fsum(f(*pair) for pair in pairs) / len(pairs) for f in (spearman, pearson))
        found[str(column)] = Correlation(rho, r, len(wide), len(seeds))
    return found


def sentences(
    layout: Layout, measured: Mapping[str, Correlation], metrics: Sequence[str]
) -> list[str]:
    """What the correlations are, measured and published, a text for each column."""
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
            text += f". In print: rho = {rho}, r = {r} (n = {printed[column].teachers})"
        texts.append(text)
    return texts


def totals(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines of a table: of every teacher its mean transferability over selections, and how
    often it was drawn in all.

    The columns lose their key `selection`, the lines their spread over seeds, which the sums do not
    tell.
    """
    places = [without(column, "selection") for column in lines["column"]]
    named = pd.Series(["selection" in taken for _, taken in places], index=lines.index)
    is_selection = named & (lines["status"] == OK)
    own = lines.assign(column=[rest for rest, _ in places])[is_selection]
    of_teacher = own.groupby(PLACE, sort=False)
    sums = of_teacher["value"].agg(math.fsum)
    is_sum = sums.index.get_level_values("metric") == SELECTED
    values = sums.where(is_sum, sums / of_teacher.size())
    shown = of_teacher.last().assign(value=values.astype(object), std=None)
    return pd.concat([shown.reset_index(), lines[~is_selection]], ignore_index=True)
