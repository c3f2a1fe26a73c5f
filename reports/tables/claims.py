"""Judges what a paper claims about its tables on any set of values: the printed ones, or ours.

A claim is a predicate (`reports.tables.predicates`). Under `for all` every combination of the keys
counts as one comparison; `some`, `most` and no quantifier count once.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from reports.tables.predicates import (
    AT_CHANCE,
    UNLIKE,
    Clause,
    Comparison,
    MissingError,
    Scope,
    Tables,
    Value,
    parse,
)
from results.published import Claim, parse_column, published_table

CUT_SHORT, UNDECIDED = "cut short", "undecided (spread over seeds)"
NOT_JUDGED = "not judged"
FIGURE = "figure: "
"""How a predicate about a figure begins."""


def published_values(paper: str, table: str) -> list[Value]:
    """The printed numbers of `paper/table`, dashes and texts left out."""
    cells = published_table(f"{paper}/{table}")
    return [
        Value(c.row, parse_column(c.column), c.metric, c.value)
        for c in cells
        if isinstance(c.value, float)
    ]


@dataclass(frozen=True)
class Verdict:
    """How a claim stands on a set of values."""

    held: int
    failed: int
    undecided: int
    """Comparisons whose cells are missing, or whose difference is within the spread over seeds."""
    fails_at: tuple[str, ...]
    missing: int = 0
    """Of the undecided, those with missing cells."""
    cut_short: int = 0
    """Comparisons that so far fail, on a run that was cut short: a longer one might hold."""
    early: int = 0
    """Of the held, those on a run that was cut short: a longer one might fail."""
    settled: int = 0
    """Of the held, those whose runs had all settled; of the others it is not known."""
    failed_settled: int = 0
    """Of the failed, the same."""
    not_judged: tuple[str, ...] = ()
    """Of the undecided, why each says nothing that has its cells."""

    @property
    def total(self) -> int:
        return self.held + self.failed + self.undecided + self.cut_short

    @property
    def word(self) -> str:
        """`holds`, `holds in 3 of 4 decided`, `does not hold`, `cut short`, `undecided (spread over
        seeds)`, `not judged` or `not measured`.

        What is not decided is added, `holds in 1 of 1 decided; 8 of 9 not measured`: of runs that
        were cut short, that all of it points the other way so far. And of how many of those that
        hold the runs were cut short.
        """
        if self.total == self.missing:
            return "not measured"
        decided = self.held + self.failed
        noise = self.undecided - self.missing - len(self.not_judged)
        parts = []
        if decided:
            if decided < self.total:
                parts.append(f"holds in {self.held} of {decided} decided")
            elif self.held and self.failed:
                parts.append(f"holds in {self.held} of {decided}")
            else:
                parts.append("holds" if self.held else "does not hold")
            if self.early:
                runs = "its run" if self.early == 1 else "their runs"
                parts[0] += f" ({self.early} before {runs} settled)"
        if noise:
            parts.append(f"{noise} {UNDECIDED}" if decided else UNDECIDED)
        if self.cut_short:
            parts.append(f"{CUT_SHORT}: {other_way(self.cut_short)}")
        for why, count in Counter(self.not_judged).items():
            parts.append(f"{NOT_JUDGED}: {f'{count}, ' * (self.total > 1)}{why}")
        if self.missing:
            parts.append(f"{self.missing} of {self.total} not measured")
        return "; ".join(parts)


def other_way(count: int) -> str:
    """Which way comparisons point that were cut short, in words: those that hold are not."""
    return f"{count}, which {'fails' if count == 1 else 'all fail'} so far"


class _Outcome(Enum):
    """How one comparison comes out; the words are those of `Verdict`."""

    SETTLED = "settled"
    HELD = "held"
    EARLY = "early"
    FAILED_SETTLED = "failed, settled"
    FAILED = "failed"
    CUT_SHORT = "cut short"
    UNDECIDED = "undecided"
    AT_CHANCE = AT_CHANCE
    UNLIKE = UNLIKE
    MISSING = "missing"


HELD = (_Outcome.SETTLED, _Outcome.HELD, _Outcome.EARLY)
"""What holds, by how well it is known to be the end."""
FAILED = (_Outcome.FAILED_SETTLED, _Outcome.FAILED)
"""What does not hold, in the same order."""
SAYS_NOTHING = (_Outcome.AT_CHANCE, _Outcome.UNLIKE)
"""What is not judged, though it is measured."""
OPEN = (_Outcome.MISSING, *SAYS_NOTHING, _Outcome.UNDECIDED)
"""What is not known, the first that there is standing for several."""


def judge(
    predicate: str,
    table: str,
    tables: Tables,
    shape: Tables | None = None,
    seeds: Sequence[Tables] = (),
) -> Verdict:
    """Judge a predicate about `table`.

    `shape` (default: `tables`) tells which combinations exist: for our values, those for which the
    paper printed numbers; such a comparison without our values is undecided. `seeds` are the values
    of each seed; with at least two of them, a comparison whose difference lies within its 95 % t
    interval over seeds is undecided. One that fails on a run that was cut short is no failure. Not
    judged is one of means over different shares of their values, and one of what runs cost whose
    accuracy is at chance.
    """
    counts: Counter[_Outcome] = Counter()
    fails_at: list[str] = []
    clauses = parse(predicate)
    shape = shape or tables
    for number, clause in enumerate(clauses, 1):
        of_all = clause.quantifier in ("all", "")
        bound = [
            bindings
            for bindings in clause.combinations(shape, table)
            if clause.outcome(Scope(shape, table, bindings)) is not None  # the paper prints it
        ]
        outcomes = [_outcome(clause, Scope(tables, table, each), seeds) for each in bound]
        fails = [
            " ".join(f"{key}={value}" for key, value in bindings.items())
            for bindings, outcome in zip(bound, outcomes, strict=True)
            if outcome in FAILED
        ]
        if outcomes and not of_all:
            together = _together(clause.quantifier, outcomes)
            yes = sum(outcome in HELD for outcome in outcomes)
            fails = [f"{clause.quantifier}: {yes}/{len(outcomes)}"] if together in FAILED else []
            outcomes = [together]
        counts.update(outcomes)
        named = len(clauses) > 1 or not of_all
        fails_at += [f"[clause {number}] {place}".strip() if named else place for place in fails]
    return Verdict(
        held=sum(counts[held] for held in HELD),
        failed=sum(counts[failed] for failed in FAILED),
        undecided=sum(counts[other] for other in OPEN),
        fails_at=tuple(fails_at),
        missing=counts[_Outcome.MISSING],
        cut_short=counts[_Outcome.CUT_SHORT],
        early=counts[_Outcome.EARLY],
        settled=counts[_Outcome.SETTLED],
        failed_settled=counts[_Outcome.FAILED_SETTLED],
        not_judged=tuple(kind.value for kind in SAYS_NOTHING for _ in range(counts[kind])),
    )


def _outcome(clause: Clause, scope: Scope, seeds: Sequence[Tables]) -> _Outcome:
    """How one combination of the clause's keys comes out."""
    holds = clause.outcome(scope)
    if holds is None:
        return _Outcome.MISSING
    if why := clause.not_judged(scope):
        return _Outcome(why)
    per_seed = [replace(scope, tables=values) for values in seeds]
    if len(seeds) > 1 and not all(_beyond_spread(c, per_seed) for c in clause.comparisons):
        return _Outcome.UNDECIDED
    settled = clause.settled(scope)
    if settled is False:
        return _Outcome.EARLY if holds else _Outcome.CUT_SHORT
    if not holds:
        return _Outcome.FAILED_SETTLED if settled else _Outcome.FAILED
    return _Outcome.SETTLED if settled else _Outcome.HELD


def _together(quantifier: str, outcomes: Sequence[_Outcome]) -> _Outcome:
    """How `some` or `most` of a clause's combinations come out."""
    of = Counter(outcomes)
    needed = 1 if quantifier == "some" else len(outcomes) // 2 + 1
    held, possible = 0, len(outcomes)
    for kind in HELD:
        held += of[kind]
        if held >= needed:
            return kind
    for kind in FAILED:
        possible -= of[kind]
        if possible < needed:
            return kind
    if possible - of[_Outcome.CUT_SHORT] < needed:
        return _Outcome.CUT_SHORT
    return next((kind for kind in OPEN if of[kind]), _Outcome.UNDECIDED)


def _beyond_spread(comparison: Comparison, seeds: Sequence[Scope]) -> bool:
    """Whether what a comparison says is told apart from chance: by each of its differences."""
    try:
        per_seed = [comparison.margins(seed) for seed in seeds]
    except MissingError:
        return False
    numbers = [margins for margins in per_seed if not isinstance(margins, bool)]
    if not numbers:
        return len(set(map(bool, per_seed))) == 1
    return all(map(_is_apart, zip(*numbers, strict=True)))


def _is_apart(margins: Sequence[float]) -> bool:
    """Whether the 95 % t interval of a difference over seeds leaves out 0."""
    # The t distribution's quantile; `scipy.stats` takes three times as long to import.
    from scipy.special import stdtrit

    if len(set(margins)) == 1:  # no spread; and costs of no privacy are no finite ones
        return True
    if not all(map(math.isfinite, margins)):
        return False
    quantile = float(stdtrit(len(margins) - 1, 0.975))
    half = quantile * statistics.stdev(margins) / math.sqrt(len(margins))
    return abs(statistics.fmean(margins)) > half


def judge_expectation(
    predicate: str,
    paper: str,
    table: str,
    ours: Tables,
    seeds: Sequence[Tables] = (),
    shape: Tables | None = None,
) -> Verdict:
    """Judge on our values what a table of this suite's own is expected to show, beside numbers that
    the paper prints of another.

    `shape` (default: `ours`) tells which combinations exist.
    """
    printed: Tables = {
        f"print:{name}": [replace(value, settled=True) for value in published_values(paper, name)]
        for clause in parse(predicate)
        for name in clause.printed
    }
    return judge(
        predicate,
        table,
        {**ours, **printed},
        {**(shape or ours), **printed},
        [{**values, **printed} for values in seeds],
    )


def judge_claim(
    claim: Claim,
    paper: str,
    ours: Tables,
    seeds: Sequence[Tables] = (),
    shape: Tables | None = None,
) -> Verdict | None:
    """Judge a claim on our values; None for a claim about a figure, whose values no paper prints,
    that was not measured.

    Of a figure the comparisons are those of which `shape` (default: `ours`) has any value.
    """
    if claim.predicate.startswith(FIGURE):
        return (
            judge(claim.predicate.removeprefix(FIGURE), claim.table, ours, shape, seeds)
            if ours.get(claim.table)
            else None
        )
    names = {claim.table} | {
        name for clause in parse(claim.predicate) for name in clause.tables(claim.table)
    }
    return judge(
        claim.predicate,
        claim.table,
        ours,
        {name: published_values(paper, name) for name in names},
        seeds,
    )
