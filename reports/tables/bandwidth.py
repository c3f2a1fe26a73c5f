"""Curves of a metric against bandwidth: where rows reach the same performance, and what they had
sent by then.
"""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from fedtables.metrics.names import BANDWIDTH, facts
from fedtables.reports.tables.table import Layout
from fedtables.reports.tables.units import PERCENT, scale_of
from fedtables.results.published import without
from fedtables.results.record import OK, Measurement, Record
from fedtables.results.store import PLACE, Line

COMMON, END = "highest-common", "end"
"""Values of the column key `at`: the best value of the metric that every row reaches, and a run's
end."""

PLACE_OF_COMMON = f"at={COMMON}"

Curve = list[tuple[float, float]]
"""GB and metric, by round."""


def curve(record: Record, metric: str) -> Curve:
    """A record's curve."""
    points: dict[str, dict[str, float]] = {}
    for m in record.measurements:
        if m.column.startswith("round=") and isinstance(m.value, float):
            points.setdefault(m.column, {})[m.metric] = m.value
    return [(point[BANDWIDTH], point[metric]) for point in points.values()]


def with_common(records: Sequence[Record], metric: str) -> list[Record]:
    """The records, with what their rows needed to reach the best value of `metric` that every row
    reaches, seed by seed.

    Higher is better. A row has reached a value the first time that its curve is there. Rows that
    send nothing, or break the contract, do not count. Nothing is added to a column in which a cell
    failed, or whose rows do not all have the same seeds.
    """
    points = [
        (r.row, r.column, r.seed, *point)
        for r in records
        for point in (curve(r, metric) if r.status == OK and not r.contract else ())
    ]
    curves = pd.DataFrame(points, columns=["row", "column", "seed", "size", "value"])
    failed = {r.column for r in records if r.status != OK}
    added = {}
    for column, of_it in curves.groupby("column", sort=False):
        sending = of_it[of_it.groupby(["row", "seed"])["size"].transform("last") > 0]
        seeds = {frozenset(of_row) for _, of_row in sending.groupby("row")["seed"]}
        if column in failed or sending["row"].nunique() < 2 or len(seeds) > 1:
            continue
        best = sending.groupby(["seed", "row"])["value"].max().groupby("seed").min()
        reached = sending[sending["value"] >= sending["seed"].map(best)]
        first = reached.groupby(["row", "seed"], as_index=False)["size"].first()
        for row, seed, size in first.itertuples(index=False, name=None):
            added[row, column, seed] = (
                Measurement(metric, float(best[seed]), PLACE_OF_COMMON),
                Measurement(BANDWIDTH, float(size), PLACE_OF_COMMON),
            )
    return [
        replace(r, measurements=(*r.measurements, *added.get((r.row, r.column, r.seed), ())))
        for r in records
    ]


def summary(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines of a table: the end of every curve, and the common performance."""
    places = [without(column, "round") for column in lines["column"]]
    is_point = pd.Series(["round" in taken for _, taken in places], index=lines.index)
    ends = lines.assign(column=[f"{rest} at={END}".strip() for rest, _ in places])[is_point]
    last = ends.groupby(PLACE, sort=False).last()  # rounds are in order
    return pd.concat([last.reset_index(), lines[~is_point]], ignore_index=True)


def sentences(layout: Layout, lines: Sequence[Line], metric: str) -> list[str]:
    """What each row had sent when it first had the common performance: a sentence for each
    column.
    """
    by_column: dict[str, dict[str, dict[str, float]]] = {}
    for line in lines:
        column, taken = without(line["column"], "at")
        if line["status"] == OK and taken.get("at") == COMMON:
            of_row = by_column.setdefault(column, {}).setdefault(line["row"], {})
            of_row[line["metric"]] = line["value"]
    scale, size = scale_of(metric, layout.unit), scale_of(BANDWIDTH, layout.unit)
    texts = []
    for column, rows in by_column.items():
        sent = ", ".join(
            f"{layout.rows[row]} {size.text(values[BANDWIDTH])} GB" for row, values in rows.items()
        )
        value = scale.text(next(iter(rows.values()))[metric])
        texts.append(
            f"{column}: {value} is the highest {scale.title} that every row reaches; bandwidth"
            f" until then: {sent}"
        )
    return texts


def only_common(records: Sequence[Record]) -> list[Record]:
    """The records `with_common` gave, with nothing else than what it added: what a claim about the
    figure is judged on.
    """
    return [
        replace(r, measurements=tuple(m for m in r.measurements if m.column == PLACE_OF_COMMON))
        for r in records
    ]


def at_which(records: Sequence[Record], metric: str, unit: str) -> str:
    """The common performance in words, mean over seeds, to be put behind a verdict; empty if there
    is none.
    """
    scale, name = scale_of(metric, unit), facts(metric).title.lower()
    values = pd.DataFrame(
        [
            (record.column, m.value)
            for record in only_common(records)
            for m in record.measurements
            if m.metric == metric
        ],
        columns=["column", "value"],
    )
    sign = " %" if facts(metric).share and unit == PERCENT else ""
    means = values.groupby("column", sort=False)["value"].mean()
    texts = [f"{name} {scale.text(float(mean))}{sign} in {at}" for at, mean in means.items()]
    return f" (at {', '.join(texts)})" if texts else ""
