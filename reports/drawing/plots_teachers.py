"""A plot of teachers: transfer accuracy against similarity (FedSA's Table 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from reports.drawing.figures import PUBLISHED, TICK, finish, page, styled
from reports.drawing.frames import measured
from reports.drawing.palette import NEUTRAL
from reports.drawing.plots import PRINTED
from reports.tables.table import Layout, heading
from reports.tables.teachers import Correlation, printed_correlations
from reports.tables.units import scale_of
from results.published import parse_column, published_table

APART = 2
"""Published values have panels of their own where one axis for both would be so many times as long
as the longer of two."""


@styled
def transferability_plot(
    layout: Layout,
    lines: pd.DataFrame,
    path: Path,
    metrics: Sequence[str],
    correlations: Mapping[str, Correlation],
) -> None:
    """The first metric (transfer accuracy) against the second (similarity), a mark per teacher and
    a panel per column.

    Published values are open marks, in panels of their own below where their accuracies lie
    elsewhere. The `correlations`, by column, stand in the panels' titles beside the printed ones.
    """
    ours, printed = _marks(measured(lines), metrics), _marks(_published(layout.key), metrics)
    if not ours:
        return
    none = next(iter(ours.values()))[:0]
    theirs = {column: printed.get(column, none) for column in ours}
    apart = any(
        _span(pd.concat([ours[c], theirs[c]])) > APART * max(_span(ours[c]), _span(theirs[c]))
        for c in ours
        if len(theirs[c])
    )
    figure, axes = page([[2.6] * len(ours)] * (2 if apart else 1), 2.4)
    coefficients = printed_correlations(layout.key, metrics)
    accuracy, similarity = (scale_of(metric, layout.unit).title for metric in metrics)
    for number, (column, marks) in enumerate(ours.items()):
        titles = [heading(parse_column(column)), _title(correlations.get(column))]
        beside = _title(coefficients.get(column), "published: ") if len(theirs[column]) else ""
        if apart:
            _scatter(axes[1][number], none, theirs[column], titles[0], beside)
            axes[1][number].set_visible(len(theirs[column]) > 0)
            _scatter(axes[0][number], marks, none, *titles)
        else:
            _scatter(axes[0][number], marks, theirs[column], *titles, beside)
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
    wide = found[found["metric"].isin(metrics)].pivot(
        index=["column", "row"], columns="metric", values=["value", "std"]
    )
    wanted = [
        ("value", metrics[1]),
        ("std", metrics[1]),
        ("value", metrics[0]),
        ("std", metrics[0]),
    ]
    marks = wide.reindex(columns=pd.MultiIndex.from_tuples(wanted)).astype(float)
    marks.columns = pd.Index(["x", "dx", "y", "dy"])
    marks = marks.dropna(subset=["x", "y"])
    return {str(column): of_it for column, of_it in marks.groupby(level=0, sort=False)}


def _span(marks: pd.DataFrame) -> float:
    return float(marks["y"].max() - marks["y"].min()) if len(marks) else 0.0


def _title(correlation: Correlation | None, what: str = "") -> str:
    if correlation is None:
        return ""
    rho, r = correlation.coefficients
    return f"{what}Spearman ρ = {rho}, Pearson r = {r} (n = {correlation.teachers})" + (
        f"\n{correlation.means}" if correlation.means else ""
    )


def _scatter(axis: Axes, ours: pd.DataFrame, published: pd.DataFrame, *titles: str) -> None:
    filled: dict[str, Any] = {"fmt": "o", "color": NEUTRAL, "elinewidth": 0.6, "label": "measured"}
    right: dict[str, Any] = {"xytext": (4, 3), "color": NEUTRAL}
    # Names on either side, so that the two do not meet.
    left: dict[str, Any] = {"xytext": (-4, -9), "color": "#57606a", "ha": "right"}
    shown = ((published, {**PRINTED, "label": PUBLISHED}, left), (ours, filled, right))
    for marks, look, name in shown:
        if marks.empty:
            continue
        axis.errorbar(marks["x"], marks["y"], xerr=marks["dx"], yerr=marks["dy"], **look)
        for (_, row), x, y in zip(marks.index, marks["x"], marks["y"], strict=True):
            number = row.rpartition("-")[2]
            axis.annotate(number, (x, y), textcoords="offset points", fontsize=TICK, **name)
    axis.set_xlim(-0.07, 1.07)
    axis.margins(y=0.12)
    axis.grid()
    axis.set_title("\n".join(filter(None, titles)))
