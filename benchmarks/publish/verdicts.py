"""Verdicts on a paper's claims, from the records of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks.running.runner import TableRun, finished_records
from benchmarks.tables import registry
from benchmarks.tables.derived import as_printed
from benchmarks.tables.spec import Table
from metrics.names import BANDWIDTH
from reports.kinds.kind import find_kind
from results import published
from results.published import parse_column
from results.record import OK, Record
from results.store import TableFiles

if TYPE_CHECKING:
    from reports.tables.claims import Verdict
    from reports.tables.predicates import Tables, Value


def values_of(records: Sequence[Record]) -> list[Value]:
    """Mean values over the records' seeds, for claims; settled where all of them had. Of rows that
    break the contract there is none.
    """
    from reports.tables.predicates import Value

    groups: dict[tuple[str, str, str], list[float]] = {}
    settled: dict[tuple[str, str, str], list[bool | None]] = {}
    for record in records:
        for m in record.measurements if record.status == OK and not record.contract else ():
            if isinstance(m.value, float):
                place = (record.row, f"{record.column} {m.column}".strip(), m.metric)
                groups.setdefault(place, []).append(m.value)
                settled.setdefault(place, []).append(record.settled.get(m.metric))
    return [
        Value(row, parse_column(column), metric, sum(v) / len(v), _of_all(settled[place]))
        for place, v in groups.items()
        for row, column, metric in (place,)
    ]


def _of_all(seeds: Sequence[bool | None]) -> bool | None:
    """False if a seed's run was cut short, else None if of one it is not known."""
    return False if False in seeds else None if None in seeds else True


def judge_claims(run: TableRun, records: Sequence[Record]) -> list[dict[str, str]]:
    """Verdicts on the paper's claims about this table, and on what it is expected to show; other
    tables that a claim needs come from finished cells.
    """
    from reports.tables.claims import judge_claim, judge_expectation

    judged, at_which = find_kind(run.table.measure).judged(
        as_printed(records, run.table.derived), run.table.metrics, run.table.unit
    )
    ours = {run.table.key: judged}
    plain = replace(run.selection, add=(), drop=())
    for table in run.paper.tables:
        if table.key != run.table.key and registry.find_measure(table.measure).numbers:
            files = TableFiles(
                run.files.base.parents[2],
                plain.profile,
                f"{run.paper.key}/{table.key}",
                plain.variant,
            )
            finished = finished_records(run.paper, table, plain, files)
            ours[table.key] = as_printed(finished, table.derived)
    seeds = sorted({r.seed for r in records})
    origins = " ".join(sorted({f"{r.data['asked']}:{r.data['origin']}" for r in records if r.data}))
    shape = None
    means: Tables = {name: values_of(finished) for name, finished in ours.items()}
    per_seed: list[Tables] = [
        {n: values_of([r for r in finished if r.seed == seed]) for n, finished in ours.items()}
        for seed in seeds
    ]
    if run.table.unmeasured:
        shape = {**means, run.table.key: [*means[run.table.key], *_unmeasured(run, records)]}
    stated: list[tuple[str, str, str, Verdict | None]] = [
        (
            claim.id,
            claim.claim,
            f"{claim.holds_in_print} {claim.cells}".strip(),
            judge_claim(claim, run.paper.key, means, per_seed, shape),
        )
        for claim in published.claims(run.paper.key)
        if claim.table == run.table.key
    ]
    stated += [
        (
            expected.id,
            f"{expected.text} (expected; tests {', '.join(expected.claims)})",
            "not in print",
            judge_expectation(
                expected.predicate, run.paper.key, run.table.key, means, per_seed, shape
            ),
        )
        for expected in run.table.expectations
    ]
    alone = _spread_note(run.table, seeds)
    lines = []
    for name, text, in_print, verdict in stated:
        lines.append(
            {
                "id": name,
                "claim": text,
                "verdict": (
                    verdict.word + at_which + alone
                    if verdict
                    else "not judged (the paper prints no values)"
                ),
                "held": str(verdict.held if verdict else ""),
                "failed": str(verdict.failed if verdict else ""),
                "undecided": str(verdict.undecided if verdict else ""),
                "cut_short": str(verdict.cut_short if verdict else ""),
                "settled": str(verdict.settled if verdict else ""),
                "failed_settled": str(verdict.failed_settled if verdict else ""),
                "in_print": in_print,
                "seeds": str(len(seeds)),
                "profile": run.selection.profile,
                "data": origins,
                "fails_at": " | ".join(verdict.fails_at) if verdict else "",
            }
        )
    return lines


def _unmeasured(run: TableRun, records: Sequence[Record]) -> list[Value]:
    """A value that is none, for every cell of the columns that the suite does not measure: they
    count as missing.
    """
    from reports.tables.predicates import Value

    return [
        Value(row, column, metric, math.nan)
        for column, _ in run.table.unmeasured
        for row in dict.fromkeys(record.row for record in records)
        for metric in (*run.table.metrics, BANDWIDTH)
    ]


def _spread_note(table: Table, seeds: Sequence[int]) -> str:
    """What a verdict's spread over seeds is of, if a seed moves no training in this table."""
    narrow = table.seed_axes and "shuffling" not in table.seed_axes
    return f" (spread of {', '.join(table.seed_axes)} alone)" if narrow and len(seeds) > 1 else ""
