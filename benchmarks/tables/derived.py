"""Columns that are computed from other columns: means over test sets, sums over modalities."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from fedtables.benchmarks.tables.spec import Derived
from fedtables.results.published import format_column
from fedtables.results.record import OK, Measurement, Record


def with_derived(records: Sequence[Record], derived: Sequence[Derived]) -> list[Record]:
    """The records, and after them one for each row, seed and derived column of whose parts all are
    there and have its metrics.
    """
    made = []
    for row, seed in dict.fromkeys((record.row, record.seed) for record in records):
        own = {r.column: r for r in records if (r.row, r.seed, r.status) == (row, seed, OK)}
        for rule in derived:
            parts = [own.get(format_column(dict(keys))) for keys in rule.of]
            whole = [part for part in parts if part is not None]
            if len(whole) == len(parts) and (numbers := combined(whole, rule)):
                made.append(
                    replace(
                        whole[0],
                        column=format_column(dict(rule.column)),
                        measurements=numbers,
                        arrays="",
                        bytes_up=sum(part.bytes_up for part in whole),
                        bytes_down=sum(part.bytes_down for part in whole),
                    )
                )
    return [*records, *made]


def as_printed(records: Sequence[Record], derived: Sequence[Derived]) -> list[Record]:
    """`with_derived`, and of metrics that print has in a derived column alone no others: what
    claims are judged on.
    """
    moved = {metric for rule in derived if rule.alone for metric in rule.metrics}
    kept = [
        replace(r, measurements=tuple(m for m in r.measurements if m.metric not in moved))
        for r in records
    ]
    return [*kept, *with_derived(records, derived)[len(records) :]]


def combined(parts: Sequence[Record], rule: Derived) -> tuple[Measurement, ...]:
    """The sum of each metric over records, or its mean with their weights, of as many values as
    theirs together; nothing of a metric that one of them lacks.
    """
    found = [
        {m.metric: m for m in part.measurements if isinstance(m.value, float)} for part in parts
    ]
    values = [{name: float(m.value) for name, m in of_part.items()} for of_part in found]
    made = []
    for metric in rule.metrics:
        if not all({metric, rule.weights or metric} <= of_part.keys() for of_part in values):
            continue
        if rule.weights:
            weights = [of_part[rule.weights] for of_part in values]
            total = sum(w * of_part[metric] for w, of_part in zip(weights, values, strict=True))
            value = total / sum(weights)
        else:
            value = sum(of_part[metric] for of_part in values)
        counts = [of_part[metric] for of_part in found]
        defined, of = (_sum(getattr(m, name) for m in counts) for name in ("defined", "of"))
        made.append(Measurement(metric, value, defined=defined, of=of))
    return tuple(made)


def _sum(counts: Iterable[int | None]) -> int | None:
    """None if one is."""
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)
