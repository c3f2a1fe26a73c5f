"""A plot of teachers: transfer accuracy against similarity (FedSA's Table 3)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from fedtables.reports.drawing.figures import PUBLISHED, TICK, finish, page, styled
from fedtables.reports.drawing.frames import measured
from fedtables.reports.drawing.palette import NEUTRAL
from fedtables.reports.drawing.plots import PRINTED
from fedtables.reports.tables.table import ShownTable, heading
from fedtables.reports.tables.teachers import Correlation, correlations, printed_correlations
from fedtables.reports.tables.units import scale_of
from fedtables.results.published import parse_column, published_table

OURS: dict[str, Any] = {"fmt": "o", "color": NEUTRAL, "elinewidth": 0.6, "label": "measured"}
THEIRS: dict[str, Any] = {**PRINTED, "label": PUBLISHED}
"""How marks are drawn, ours and published ones."""


@styled
def transferability_plot(table: ShownTable, path: Path) -> None:
    """The first metric (transfer accuracy) against the second (similarity), a mark per teacher and
    a panel per column; published values are open marks in panels of their own, since their
    accuracies may lie elsewhere. The correlations, ours and printed ones, stand in the panels'
    titles.
    """
    layout, metrics = table.layout, table.metrics
    ours = _marks(measured(table.lines), metrics)
    if not ours:
        return
    printed = _marks(_published(layout.key), metrics)
    theirs = {column: printed[column] for column in ours if column in printed}
    counts = [len(of) for of in (ours, theirs) if of]
    figure, axes = page(counts, [2.6] * len(counts), 2.4)
    coefficients = correlations(table.records, metrics)
    for axis, (column, marks) in zip(axes[0], ours.items(), strict=True):
        _scatter(axis, marks, OURS, column, coefficients.get(column))
    coefficients = printed_correlations(layout.key, metrics)
    for axis, (column, marks) in zip(axes[-1] if theirs else (), theirs.items(), strict=True):
        _scatter(axis, marks, THEIRS, column, coefficients.get(column), "published: ")
    accuracy, similarity = (scale_of(metric, layout.unit).title for metric in metrics)
    for axis in figure.axes:
        axis.set(xlabel=similarity, ylabel=accuracy)
    finish(figure, layout, path)


def _published(table: str) -> pd.DataFrame:
    """The numbers that a table prints, as `measured` has ours."""
    cells = [cell for cell in published_table(table) if isinstance(cell.value, float)]
    found = [(c.row, c.column, c.metric, c.value, c.std) for c in cells]
    frame = pd.DataFrame(found, columns=["row", "column", "metric", "value", "std"])
    return frame.astype({"value": float, "std": float})


def _marks(found: pd.DataFrame, metrics: Sequence[str]) -> dict[str, pd.DataFrame]:
    """By column the teachers that have both metrics, each with its place and spreads."""
    accuracy, similarity = metrics
    places = [("value", similarity), ("std", similarity), ("value", accuracy), ("std", accuracy)]
    wide = found[found["metric"].isin(metrics)].pivot(
        index=["column", "row"], columns="metric", values=["value", "std"]
    )
    marks = wide.reindex(columns=pd.MultiIndex.from_tuples(places)).astype(float)
    marks.columns = pd.Index(["x", "dx", "y", "dy"])
    marks = marks.dropna(subset=["x", "y"])
    return {str(column): of_it for column, of_it in marks.groupby(level=0, sort=False)}


def _scatter(
    axis: Axes,
    marks: pd.DataFrame,
    look: Mapping[str, Any],
    column: str,
    correlation: Correlation | None,
    what: str = "",
) -> None:
    """One panel, with its column and correlation as its title; a mark has its teacher's number."""
    axis.errorbar(marks["x"], marks["y"], xerr=marks["dx"], yerr=marks["dy"], **look)
    for (_, row), x, y in zip(marks.index, marks["x"], marks["y"], strict=True):
        beside: dict[str, Any] = {"xytext": (4, 3), "textcoords": "offset points"}
        axis.annotate(row.rpartition("-")[2], (x, y), fontsize=TICK, color=NEUTRAL, **beside)
    axis.set_xlim(-0.07, 1.07)
    axis.margins(y=0.12)
    axis.grid()
    titles = [heading(parse_column(column))]
    if correlation is not None:
        rho, r = correlation.coefficients
        titles.append(f"{what}Spearman ρ = {rho}, Pearson r = {r} (n = {correlation.teachers})")
        titles.append(correlation.means)
    axis.set_title("\n".join(filter(None, titles)))
