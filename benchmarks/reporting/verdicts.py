"""Verdicts on a paper's claims, from the records of a run."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from fedtables.benchmarks.running.table_run import TableRun
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.derived import as_printed
from fedtables.benchmarks.tables.spec import Paper, Table
from fedtables.datasets import catalogue
from fedtables.metrics.names import BANDWIDTH, COSTS, facts
from fedtables.reports.measures.kind import find_kind
from fedtables.reports.tables.claims import (
    COUNTS,
    Undecided,
    Verdict,
    judge_claim,
    judge_expectation,
)
from fedtables.reports.tables.margins import SAME_POINTS
from fedtables.reports.tables.predicates import Tables, Value
from fedtables.reports.tables.units import scale_of
from fedtables.results import published
from fedtables.results.published import parse_column
from fedtables.results.record import OK, Measurement, Record
from fedtables.results.store import TableFiles

NO_VALUES = "not judged (the paper prints no values)"


def values_of(records: Sequence[Record], unit: str = "") -> list[Value]:
    """Mean values over the records' seeds, for claims, of a table whose shares are in `unit`;
    settled where all of them had. Of what a run costs `learnt` says whether any accuracy in its
    place is `above_chance`. Of rows that break the contract there is none.
    """
    groups: dict[tuple[str, str, str], list[tuple[Record, Measurement]]] = {}
    for record in records:
        for m in record.measurements if record.status == OK and not record.contract else ():
            if isinstance(m.value, float):
                place = (record.row, f"{record.column} {m.column}".strip(), m.metric)
                groups.setdefault(place, []).append((record, m))
    means = {
        place: sum(float(m.value) for _, m in of_it) / len(of_it) for place, of_it in groups.items()
    }
    learnt: dict[tuple[str, str], bool] = {}
    for (row, column, metric), of_seeds in groups.items():
        _, best = scale_of(metric, unit).bounds or (0, 1)
        above = above_chance(metric, means[row, column, metric] / best, of_seeds[0][0])
        if above is not None:
            learnt[row, column] = learnt.get((row, column), False) or above
    values = []
    for (row, column, metric), of_seeds in groups.items():
        settled = [record.settled.get(metric) for record, _ in of_seeds]
        counts = [(m.defined, m.of or 0) for _, m in of_seeds if m.defined is not None]
        known = len(counts) == len(of_seeds)
        values.append(
            Value(
                *(row, parse_column(column), metric, means[row, column, metric]),
                False if False in settled else None if None in settled else True,
                (sum(d for d, _ in counts), sum(of for _, of in counts)) if known else None,
                learnt.get((row, column)) if metric in COSTS else None,
                _negligible(metric, unit),
            )
        )
    return values


def _negligible(metric: str, unit: str) -> float:
    """How small a difference of a metric may count as none, in a table of `unit`: a point, which
    is a hundredth of the metric's scale. Infinite where it has no scale.
    """
    whole = scale_of(metric, unit).whole
    return 0.0 if metric in COSTS else math.inf if whole is None else SAME_POINTS * whole / 100


def above_chance(metric: str, value: float, record: Record) -> bool | None:
    """Whether a share of right answers is above what guessing gives of the record's data by more
    than two standard errors of a guess on as many test samples. None for other metrics, and where
    the number of classes is not known.
    """
    chance = facts(metric).chance
    if facts(metric).of_samples and record.data.get("used") in catalogue.sources():
        chance = 1 / catalogue.source(record.data["used"]).classes
    if chance is None:
        return None
    error = math.sqrt(chance * (1 - chance) / record.test_samples) if record.test_samples else 0.0
    return value > chance + 2 * error


def judge_claims(run: TableRun, records: Sequence[Record]) -> list[dict[str, str]]:
    """Verdicts on the paper's claims about this table, and on what it is expected to show; other
    tables that a claim needs come from finished cells.
    """
    return judge_records(
        run.paper, run.table, run.selection.profile, records, _finished_beside(run)
    )


def undecided(run: TableRun, records: Sequence[Record]) -> list[Undecided]:
    """The comparisons of claims about this table that more seeds may decide."""
    found = _judged(run.paper, run.table, records, _finished_beside(run))
    return [each for _, _, verdict in found if verdict for each in verdict.undecided]


def _finished_beside(run: TableRun) -> Callable[[Table], Sequence[Record]]:
    """The finished records of another table of the paper."""
    plain, folder = replace(run.selection, add=(), drop=()), run.files.base.parents[2]

    def finished(table: Table) -> list[Record]:
        if table.key not in run.others:
            name = f"{run.paper.key}/{table.key}"
            files = TableFiles(folder, plain.profile, name, plain.variant)
            run.others[table.key] = TableRun(run.paper, table, plain, [], files).finished()
        return run.others[table.key]

    return finished


def judge_records(
    paper: Paper,
    of_table: Table,
    profile: str,
    records: Sequence[Record],
    others: Callable[[Table], Sequence[Record]],
) -> list[dict[str, str]]:
    """Verdicts on the paper's claims about a table, and on what it is expected to show, of the
    table's `records` and those of `others`.
    """
    _, at_which = _kind_of(of_table, records)
    seeds = sorted({r.seed for r in records})
    origins = " ".join(sorted({f"{r.data['asked']}:{r.data['origin']}" for r in records if r.data}))
    behind = at_which + _spread_note(of_table, seeds)
    about = {"seeds": str(len(seeds)), "profile": profile, "data": origins}
    return [
        named
        | _told(verdict, behind, {"in_print": in_print, **about})
        | _cost(verdict, of_table, records)
        for named, in_print, verdict in _judged(paper, of_table, records, others)
    ]


def is_read(table: Table, value: Value, row: str, column: str) -> bool:
    """Whether a value of a table is that of a cell, or computed of it."""
    parts: list[Mapping[str, str]] = [
        dict(keys)
        for rule in table.derived
        if dict(rule.column).items() <= value.keys.items()
        for keys in rule.of
    ]
    keys = parse_column(column).items()
    return row == value.row and any(keys <= part.items() for part in parts or [value.keys])


def _cost(verdict: Verdict | None, table: Table, records: Sequence[Record]) -> dict[str, str]:
    """What would close a claim, of this table's cells: core-hours of further seeds, and how many
    comparisons no seeds up to the most would close.
    """
    seconds: dict[tuple[str, str], list[float]] = {}
    for record in records:
        seconds.setdefault((record.row, record.column), []).append(record.seconds)
    further: dict[tuple[str, str], float] = {}
    for open_one in verdict.undecided if verdict else ():
        for place in seconds if math.isfinite(open_one.further) else ():
            if any(is_read(table, v, *place) for key, v in open_one.reads if key == table.key):
                further[place] = max(further.get(place, 0), open_one.further)
    hours = sum(count * fmean(seconds[place]) for place, count in further.items()) / 3600
    beyond = sum(math.isinf(one.further) for one in verdict.undecided) if verdict else 0
    return {"core_hours": f"{hours:.2g}" if hours else "", "beyond": str(beyond or "")}


def _kind_of(of_table: Table, records: Sequence[Record]) -> tuple[list[Record], str]:
    return find_kind(of_table.measure).judged(
        as_printed(records, of_table.derived), of_table.metrics, of_table.unit
    )


def _judged(
    paper: Paper,
    of_table: Table,
    records: Sequence[Record],
    others: Callable[[Table], Sequence[Record]],
) -> Iterator[tuple[dict[str, str], str, Verdict | None]]:
    """What is judged, its id and its text; how it stands in print; and how here."""
    judged, _ = _kind_of(of_table, records)
    ours = {of_table.key: judged}
    units = {table.key: table.unit for table in (*paper.tables, of_table)}
    for table in paper.tables:
        if table.key != of_table.key and registry.find_measure(table.measure).numbers:
            ours[table.key] = as_printed(others(table), table.derived)
    seeds = sorted({r.seed for finished in ours.values() for r in finished})
    shape = None
    means: Tables = {name: values_of(finished, units[name]) for name, finished in ours.items()}
    per_seed: list[Tables] = [
        {n: values_of([r for r in of if r.seed == seed], units[n]) for n, of in ours.items()}
        for seed in seeds
    ]
    if of_table.unmeasured:
        shape = {**means, of_table.key: [*means[of_table.key], *_unmeasured(of_table, records)]}
    for claim in published.claims(paper.key):
        if claim.table == of_table.key:
            verdict = judge_claim(claim, paper.key, means, per_seed, shape)
            printed = f"{claim.holds_in_print} {claim.cells}".strip()
            yield {"id": claim.id, "claim": claim.claim}, printed, verdict
    for expected in paper.expectations(of_table):
        key, predicate = of_table.key, expected.predicate
        found = judge_expectation(predicate, paper.key, key, means, per_seed, shape)
        text = f"{expected.text} (expected; tests {', '.join(expected.claims)})"
        yield {"id": expected.id, "claim": text}, "not in print", found


def _told(verdict: Verdict | None, behind: str, about: Mapping[str, str]) -> dict[str, str]:
    """A verdict as its line in a table's `claims.csv` has it."""
    counts = {n: str(verdict.count(*of)) if verdict else "" for n, of in COUNTS.items()}
    word = verdict.word + behind if verdict else NO_VALUES
    fails_at = " | ".join(verdict.fails_at) if verdict else ""
    return {"verdict": word, **counts, **about, "fails_at": fails_at}


def _unmeasured(table: Table, records: Sequence[Record]) -> list[Value]:
    """A value that is none, for every cell of the columns that the suite does not measure: they
    count as missing.
    """
    rows = dict.fromkeys(record.row for record in records)
    every = itertools.product(table.unmeasured, rows, (*table.metrics, BANDWIDTH))
    return [Value(row, column, metric, math.nan) for (column, _), row, metric in every]


def _spread_note(table: Table, seeds: Sequence[int]) -> str:
    """What a verdict's spread over seeds is of, if a seed moves no training in this table."""
    narrow = table.seed_axes and "shuffling" not in table.seed_axes
    return f" (spread of {', '.join(table.seed_axes)} alone)" if narrow and len(seeds) > 1 else ""
