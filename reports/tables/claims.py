"""Judges what a paper claims about its tables on any set of values: the printed ones, or ours.

A claim is a predicate (`fedtables.reports.tables.predicates`). Under `for all` every combination of
the keys counts as one comparison; `some`, `most` and no quantifier count once.
"""

import contextlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from fedtables.reports.tables.margins import Standing
from fedtables.reports.tables.predicates import (
    Clause,
    MissingError,
    Scope,
    Tables,
    Value,
    parse,
)
from fedtables.results.published import Claim, parse_column, published_table

NO_DIFFERENCE = "no difference"
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


class Outcome(Enum):
    """How one comparison comes out."""

    SETTLED = "holds, and its runs had all settled"
    HELD = "holds"
    EARLY = "holds on a run that was cut short: a longer one might fail"
    FAILED_SETTLED = "fails, and its runs had all settled"
    FAILED = "fails"
    SAME = "no difference"
    SAME_EARLY = "no difference so far, on a run that was cut short"
    CUT_SHORT = "fails so far, on a run that was cut short: a longer one might hold"
    MISSING = "its cells are missing"
    AT_CHANCE = "accuracy at chance"
    UNLIKE = "means over different shares of their values"
    UNDECIDED = "its difference is within the spread over seeds"


HELD = (Outcome.SETTLED, Outcome.HELD, Outcome.EARLY)
"""What holds, by how well it is known to be the end."""
FAILED = (Outcome.FAILED_SETTLED, Outcome.FAILED)
"""What does not hold, in the same order."""
SAME = (Outcome.SAME, Outcome.SAME_EARLY)
"""What is neither, in the same order."""
SAYS_NOTHING = (Outcome.AT_CHANCE, Outcome.UNLIKE)
"""What is not judged, though it is measured; the words say why."""
OPEN = (Outcome.MISSING, *SAYS_NOTHING, Outcome.UNDECIDED)
"""What is not known, the first that there is standing for several."""
COUNTS = {
    "held": HELD,
    "failed": FAILED,
    "undecided": OPEN,
    "cut_short": (Outcome.CUT_SHORT,),
    "same": SAME,
    "settled": (Outcome.SETTLED,),
    "failed_settled": (Outcome.FAILED_SETTLED,),
}
"""What a table's `claims.csv` counts, by column."""


@dataclass(frozen=True)
class Undecided:
    """A comparison that more seeds may decide."""

    reads: tuple[tuple[str, Value], ...]
    """What it compares, each with its table."""
    further: float
    """Seeds that it would take more, if means and deviations stay; infinite for more than
    `fedtables.reports.tables.margins.LOOKS` has."""


@dataclass(frozen=True)
class Verdict:
    """How a claim stands on a set of values."""

    outcomes: Counter[Outcome]
    """How many comparisons come out so."""
    fails_at: tuple[str, ...] = ()
    undecided: tuple[Undecided, ...] = ()
    """What more seeds may decide; of `some` and `most` whatever their verdict may hang on."""

    def count(self, *kinds: Outcome) -> int:
        return sum(self.outcomes[kind] for kind in kinds)

    @property
    def word(self) -> str:
        """`holds`, `holds in 3 of 4 decided`, `does not hold`, `no difference`, `cut short`,
        `undecided (spread over seeds)`, `not judged` or `not measured`.

        What is not decided is added, `holds in 1 of 1 decided; 8 of 9 not measured`: of runs that
        were cut short, that all of it points the other way so far. And of how many of those that
        hold the runs were cut short.
        """
        total, missing = self.outcomes.total(), self.count(Outcome.MISSING)
        if total == missing:
            return "not measured"
        held, decided = self.count(*HELD), self.count(*HELD, *FAILED)
        parts = []
        if decided:
            share = f"holds in {held} of {decided}"
            whole = "holds" if held else "does not hold"
            both = share if held and held < decided else whole
            parts.append(f"{share} decided" if decided < total else both)
            if early := self.count(Outcome.EARLY):
                parts[0] += f" ({early} before {'its run' if early == 1 else 'their runs'} settled)"
        if same := self.count(*SAME):
            early = self.count(Outcome.SAME_EARLY)
            how = f" ({early} before {'its run' if early == 1 else 'their runs'} settled)"
            parts.append(f"{NO_DIFFERENCE}{f': {same}' * (same < total)}{how * bool(early)}")
        if noise := self.count(Outcome.UNDECIDED):
            parts.append(f"{noise} {UNDECIDED}" if decided else UNDECIDED)
        if short := self.count(Outcome.CUT_SHORT):
            other_way = "fails" if short == 1 else "all fail"
            parts.append(f"{CUT_SHORT}: {short}, which {other_way} so far")
        for kind in SAYS_NOTHING:
            if count := self.outcomes[kind]:
                parts.append(f"{NOT_JUDGED}: {f'{count}, ' * (total > 1)}{kind.value}")
        if missing:
            parts.append(f"{missing} of {total} not measured")
        return "; ".join(parts)


def judge(
    predicate: str,
    table: str,
    tables: Tables,
    shape: Tables | None = None,
    seeds: Sequence[Tables] = (),
    printed: Tables | None = None,
) -> Verdict:
    """Judge a predicate about `table`.

    `shape` (default: `tables`) tells which combinations exist: for our values, those for which the
    paper printed numbers; such a comparison without our values is undecided. `seeds` are the values
    of each seed; with at least two of them, a comparison is undecided whose difference is not clear
    (`fedtables.reports.tables.margins`). Where it is clearly small beside the `printed` one there
    is no difference. One that fails on a run that was cut short is no failure, unless runs
    that had settled are enough for that. Not judged is one of means over different shares of their
    values, and one of what runs cost whose accuracy is at chance.
    """
    counts: Counter[Outcome] = Counter()
    fails_at: list[str] = []
    undecided: list[Undecided] = []
    clauses = parse(predicate)
    shape = shape or tables
    for number, clause in enumerate(clauses, 1):
        of_all = clause.quantifier in ("all", "")
        found = [
            (bindings, _outcome(clause, Scope(tables, table, bindings), seeds, printed))
            for bindings in clause.combinations(shape, table)
            if clause.outcome(Scope(shape, table, bindings)) is not None  # the paper prints it
        ]
        outcomes = [outcome for _, outcome in found]
        fails = [
            " ".join(f"{key}={value}" for key, value in bindings.items())
            for bindings, outcome in found
            if outcome in FAILED
        ]
        if outcomes and not of_all:
            together = _together(clause.quantifier, outcomes)
            yes = sum(outcome in HELD for outcome in outcomes)
            fails = [f"{clause.quantifier}: {yes}/{len(outcomes)}"] if together in FAILED else []
            outcomes = [together]
        counts.update(outcomes)
        if Outcome.UNDECIDED in outcomes:
            undecided += [
                _undecided(clause, Scope(tables, table, bindings), seeds, printed)
                for bindings, outcome in found
                if outcome is Outcome.UNDECIDED
            ]
        named = len(clauses) > 1 or not of_all
        fails_at += [f"[clause {number}] {place}".strip() if named else place for place in fails]
    return Verdict(counts, tuple(fails_at), tuple(undecided))


def _undecided(
    clause: Clause, scope: Scope, seeds: Sequence[Tables], printed: Tables | None
) -> Undecided:
    """A combination of the clause's keys that is not decided."""
    beside = _beside(scope, seeds, printed)
    further: float = 1
    for comparison in clause.comparisons:
        with contextlib.suppress(MissingError):
            further = max(further, comparison.further_seeds(*beside))
    reads = (read for comparison in clause.comparisons for read in comparison.measured(scope))
    return Undecided(tuple(reads), further)


def _beside(
    scope: Scope, seeds: Sequence[Tables], printed: Tables | None
) -> tuple[list[Scope], Scope | None]:
    """The same combination for each seed, and in print."""
    in_print = None if printed is None else replace(scope, tables=printed)
    return [replace(scope, tables=values) for values in seeds], in_print


def _outcome(
    clause: Clause, scope: Scope, seeds: Sequence[Tables], printed: Tables | None
) -> Outcome:
    """How one combination of the clause's keys comes out."""
    holds = clause.outcome(scope)
    if holds is None:
        return Outcome.MISSING
    read = [comparison.read(scope) for comparison in clause.comparisons]
    if any(value.learnt is False for values in read for value in values):
        return Outcome.AT_CHANCE
    if any(map(_are_unlike, read)):
        return Outcome.UNLIKE
    settled = {value.settled for values in read for value in values}
    if len(seeds) > 1:
        beside = _beside(scope, seeds, printed)
        try:
            stand = {s for c in clause.comparisons for s in c.standings(*beside)}
        except MissingError:
            return Outcome.UNDECIDED
        if Standing.OPEN in stand and Standing.BELOW not in stand:
            return Outcome.UNDECIDED
        if Standing.SAME in stand and Standing.BELOW not in stand:
            return Outcome.SAME_EARLY if False in settled else Outcome.SAME
        holds = Standing.BELOW not in stand
    if False in settled:
        return Outcome.EARLY if holds else _cut_short(clause, scope, seeds, printed)
    if None in settled:
        return Outcome.HELD if holds else Outcome.FAILED
    return Outcome.SETTLED if holds else Outcome.FAILED_SETTLED


def _cut_short(
    clause: Clause, scope: Scope, seeds: Sequence[Tables], printed: Tables | None
) -> Outcome:
    """How a combination comes out that fails on a run that was cut short: it fails whatever a
    longer one gives, if one rival that had settled is enough.
    """
    read = Counter(v.place for c in clause.comparisons for v in c.read(scope))
    rivals = [v for c in clause.comparisons for v in c.rivals(scope)]
    among_rivals = Counter(value.place for value in rivals)
    unsettled = {value.place for value in rivals if value.settled is False}
    dropped = {place for place in unsettled if read[place] == among_rivals[place]}
    if not dropped:
        return Outcome.CUT_SHORT

    def without(tables: Tables) -> Tables:
        return {n: [v for v in values if v.place not in dropped] for n, values in tables.items()}

    rest = replace(scope, tables=without(scope.tables))
    outcome = _outcome(clause, rest, [without(values) for values in seeds], printed)
    return outcome if outcome in FAILED else Outcome.CUT_SHORT


def _are_unlike(values: Sequence[Value]) -> bool:
    """Whether values of one metric are means over different shares of what they are of."""
    shares = {(v.metric, v.counted[0] / (v.counted[1] or 1)) for v in values if v.counted}
    return len(shares) > len({metric for metric, _ in shares})


def _together(quantifier: str, outcomes: Sequence[Outcome]) -> Outcome:
    """How `some` or `most` of a clause's combinations come out."""
    of = Counter(outcomes)
    needed = 1 if quantifier == "some" else len(outcomes) // 2 + 1
    held, possible = 0, len(outcomes)
    for kind in HELD:
        held += of[kind]
        if held >= needed:
            return kind
    for kind in (*FAILED, *SAME, Outcome.CUT_SHORT):
        possible -= of[kind]
        if possible < needed:
            return kind
    return next((kind for kind in OPEN if of[kind]), Outcome.UNDECIDED)


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
    every, *per_seed = [{**values, **printed} for values in (shape or ours, *seeds)]
    return judge(predicate, table, {**ours, **printed}, every, per_seed)


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
    predicate, printed = claim.predicate.removeprefix(FIGURE), None
    if predicate == claim.predicate:
        named = (name for clause in parse(predicate) for name in clause.tables(claim.table))
        shape = printed = {name: published_values(paper, name) for name in {claim.table, *named}}
    elif not ours.get(claim.table):
        return None
    return judge(predicate, claim.table, ours, shape, seeds, printed)
