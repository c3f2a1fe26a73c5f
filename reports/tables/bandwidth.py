"""Curves of a metric against bandwidth: where rows reach the same performance, and what they had
sent by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from metrics.names import BANDWIDTH, facts
from reports.tables.table import Layout
from reports.tables.units import PERCENT, scale_of
from results.published import format_column, parse_column
from results.record import OK, Measurement, Record
from results.store import PLACE, Line

COMMON, END = "highest-common", "end"
"""Values of the column key `at`: the best value of the metric that every row reaches, and a run's
end."""

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
    columns: dict[str, list[Record]] = {}
    for record in records:
        columns.setdefault(record.column, []).append(record)
    added: dict[tuple[str, str, int], tuple[Measurement, ...]] = {}
    for column, group in columns.items():
        curves = {
            (r.row, r.seed): curve(r, metric) for r in group if r.status == OK and not r.contract
        }
        sending = {key: points for key, points in curves.items() if points and points[-1][0] > 0}
        seeds: dict[str, set[int]] = {}
        for row, seed in sending:
            seeds.setdefault(row, set()).add(seed)
        if (
            any(r.status != OK for r in group)
            or len(seeds) < 2
            or len({frozenset(row_seeds) for row_seeds in seeds.values()}) > 1
        ):
            continue
        for seed in next(iter(seeds.values())):
            target = min(
                max(value for _, value in points)
                for (_, curve_seed), points in sending.items()
                if curve_seed == seed
            )
            for row in seeds:
                size = next(size for size, value in sending[row, seed] if value >= target)
                place = f"at={COMMON}"
                added[row, column, seed] = (
                    Measurement(metric, target, place),
                    Measurement(BANDWIDTH, size, place),
                )
    return [
        replace(r, measurements=(*r.measurements, *added.get((r.row, r.column, r.seed), ())))
        for r in records
    ]


def summary(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines of a table: the end of every curve, and the common performance."""
    keys = [parse_column(column) for column in lines["column"]]
    is_point = pd.Series(["round" in pairs for pairs in keys], index=lines.index)
    ends = [
        format_column({**{key: v for key, v in pairs.items() if key != "round"}, "at": END})
        for pairs in keys
    ]
    # Rounds are in order.
    last = lines.assign(column=ends)[is_point].groupby(PLACE, sort=False).last()
    return pd.concat([last.reset_index(), lines[~is_point]], ignore_index=True)


def sentences(layout: Layout, lines: Sequence[Line], metric: str) -> list[str]:
    """What each row had sent when it first had the common performance: a sentence for each
    column.
    """
    by_column: dict[str, dict[str, dict[str, float]]] = {}
    for line in lines:
        keys = parse_column(line["column"])
        if line["status"] == "ok" and keys.pop("at", "") == COMMON:
            by_column.setdefault(format_column(dict(keys)), {}).setdefault(line["row"], {})[
                line["metric"]
            ] = line["value"]
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
    place = f"at={COMMON}"
    return [
        replace(r, measurements=tuple(m for m in r.measurements if m.column == place))
        for r in records
    ]


def at_which(records: Sequence[Record], metric: str, unit: str) -> str:
    """The common performance in words, mean over seeds, to be put behind a verdict; empty if there
    is none.
    """
    scale, name = scale_of(metric, unit), facts(metric).title.lower()
    by_column: dict[str, list[float]] = {}
    for record in only_common(records):
        for m in record.measurements:
            if m.metric == metric and isinstance(m.value, float):
                by_column.setdefault(record.column, []).append(m.value)
    sign = " %" if facts(metric).share and unit == PERCENT else ""
    texts = [
        f"{name} {scale.text(sum(values) / len(values))}{sign} in {column}"
        for column, values in by_column.items()
    ]
    return f" (at {', '.join(texts)})" if texts else ""
