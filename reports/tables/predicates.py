"""Predicates: read by the grammar of `results/published/README.md`, and held against values.

A predicate is a list of clauses separated by `;`. A clause is a comparison, or a chain of them, and
may end in `for all | some | most KEYS`.
"""

from __future__ import annotations

import itertools
import math
import operator
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from metrics.correlation import pearson, spearman
from results.published import parse_column

Bindings = dict[str, str]
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
FUNCTIONS = ("max", "min", "mean", "abs", "count", "pearson", "spearman", "argmax")
AT_CHANCE = "accuracy at chance"
UNLIKE = "means over different shares of their values"
"""Why a comparison is not judged."""
CORRELATIONS = {"pearson": pearson, "spearman": spearman}
_TOKEN = re.compile(
    r"\s*(?:(?P<ref>(?:(?:print:)?table\d+:)?[a-z][a-z0-9-]*\[[^\]]*\])|(?P<number>\d+(?:\.\d+)?)|(?P<key>\{[a-z0-9-]+\})"
    r"|(?P<name>[a-z]+)|(?P<op><=|>=|==|!=|[<>+*(),-]))"
)


class ClaimError(ValueError):
    """A predicate that is not in the grammar."""


class MissingError(Exception):
    """A cell that the comparison needs has no value."""


@dataclass(frozen=True)
class Value:
    """One number of a table."""

    row: str
    keys: Mapping[str, str]
    metric: str
    number: float
    settled: bool | None = None
    """Whether the metric had settled when the run ended; None where no history tells."""
    counted: tuple[int, int] | None = None
    """Of how many values that are defined, of how many, it is a mean; None where nobody counted."""
    learnt: bool | None = None
    """Of what a run costs, whether its accuracy is above chance; None where that is not known."""


Tables = Mapping[str, Sequence[Value]]
"""Values by table key (`table2`); those in print of the same table by `print:table2`."""


@dataclass(frozen=True)
class _Comparison:
    """A chain such as a < b <= c: its terms and the operators between them."""

    terms: tuple[_Term, ...]
    operators: tuple[str, ...]
    references: tuple[_Reference, ...]
    """What the terms read."""

    def margins(self, tables: Tables, default: str, bindings: Bindings) -> list[float] | bool:
        """For each operator how far it is from failing (negative: it fails); a truth value for
        comparisons of rows.
        """
        values = [term(tables, default, bindings) for term in self.terms]
        if any(isinstance(v, str) for v in values):
            if not set(self.operators) <= {"==", "!="}:
                raise ClaimError("names of rows are equal or not, nothing else")
            return all(
                (a == b) == (op == "==")
                for (a, b), op in zip(itertools.pairwise(values), self.operators, strict=True)
            )
        numbers = [_scalar(v) for v in values]
        differences = [0.0 if a == b else a - b for a, b in itertools.pairwise(numbers)]
        signs = {"<": -1, "<=": -1, ">": 1, ">=": 1}
        return [
            signs[op] * d if op in signs else abs(d) if op == "!=" else -abs(d)
            for d, op in zip(differences, self.operators, strict=True)
        ]

    def holds(self, tables: Tables, default: str, bindings: Bindings) -> bool:
        margins = self.margins(tables, default, bindings)
        if isinstance(margins, bool):
            return margins
        # Rounding of the printed digits must not decide `<=`: compare with a little slack where
        # equality is allowed.
        return all(
            m > 1e-12 if op in ("<", ">", "!=") else m >= -1e-12
            for m, op in zip(margins, self.operators, strict=True)
        )

    def read(self, tables: Tables, default: str, bindings: Bindings) -> list[Value]:
        """Every value that it reads."""
        return [value for cells in self.references for value in cells(tables, default, bindings)]


_Reference = Callable[[Tables, str, Bindings], list[Value]]
_Operand = float | str | list[tuple[str, float]]
_Term = Callable[[Tables, str, Bindings], _Operand]


def _scalar(value: _Operand) -> float:
    if isinstance(value, list):
        if len(value) != 1:
            raise (
                MissingError if not value else ClaimError(f"expected one value, found {len(value)}")
            )
        return value[0][1]
    if isinstance(value, str):
        raise ClaimError(f"expected a number, found {value!r}")
    return value


def _flatten(values: Sequence[_Operand]) -> list[float]:
    numbers: list[float] = []
    for value in values:
        numbers.extend([v for _, v in value] if isinstance(value, list) else [_scalar(value)])
    if not numbers:
        raise MissingError
    return numbers


def _reference(text: str) -> tuple[_Reference, _Term]:
    """`table2:accuracy[a|b @ dataset=mnist]`: the values of a metric in some rows, keys bound or
    fixed; and the term that they are. `print:table2:` names the printed values.

    With `key=*` among the fixed keys, values go by that key instead of by their row: `argmax` then
    gives one of its values, and lists are correlated over them.
    """
    head, _, body = text[:-1].partition("[")
    table, _, metric = head.rpartition(":")
    rows_text, _, fixed_text = body.partition(" @ ")
    rows_text, fixed = rows_text.strip(), parse_column(fixed_text)
    over = next((key for key, value in fixed.items() if value == "*"), "")
    fixed.pop(over, None)
    if "*" in fixed.values():
        raise ClaimError(f"more than one key=* in {text!r}: values have one name")

    def cells(tables: Tables, default: str, bindings: Bindings) -> list[Value]:
        wanted = rows_text.replace("$row", bindings.get("row", "$row"))
        excluded = wanted.startswith("* - ")
        names = frozenset(wanted.removeprefix("* - ").split("|"))
        bound = {key: value for key, value in bindings.items() if key not in ("row", over, *fixed)}
        return [
            value
            for value in tables.get(table or default, ())
            if value.metric == metric
            and (wanted == "*" or (value.row in names) != excluded)
            and (not over or over in value.keys)
            and all(value.keys.get(key) == wanted_value for key, wanted_value in fixed.items())
            and all(
                value.keys.get(key, wanted_value) == wanted_value
                for key, wanted_value in bound.items()
            )
        ]

    def term(tables: Tables, default: str, bindings: Bindings) -> _Operand:
        return [
            (value.keys[over] if over else value.row, value.number)
            for value in cells(tables, default, bindings)
        ]

    return cells, term


def _call(name: str, arguments: list[_Term]) -> _Term:
    def term(tables: Tables, default: str, bindings: Bindings) -> _Operand:
        values = [argument(tables, default, bindings) for argument in arguments]
        if name == "count":
            if any(not isinstance(v, list) or not v for v in values):
                raise MissingError  # of what was not measured no number is known
            return float(sum(len(v) for v in values if isinstance(v, list)))
        if name == "abs":
            return abs(_scalar(values[0]))
        if name == "argmax":
            operand = values[0]
            if not isinstance(operand, list) or not operand:
                raise MissingError
            return max(operand, key=lambda pair: pair[1])[0]
        if name in CORRELATIONS:
            first, second = (dict(v) if isinstance(v, list) else {} for v in values)
            rows = [row for row in first if row in second]
            coefficient = CORRELATIONS[name]([first[r] for r in rows], [second[r] for r in rows])
            if math.isnan(coefficient):
                raise MissingError  # too few rows, or the same value in all of them
            return coefficient
        numbers = _flatten(values)
        return (
            max(numbers)
            if name == "max"
            else min(numbers)
            if name == "min"
            else statistics.fmean(numbers)
        )

    return term


class _Parser:
    """Recursive descent over one comparison: sums of products of references, numbers, keys and
    calls.
    """

    def __init__(self, text: str):
        self.tokens: list[tuple[str, str]] = []
        position = 0
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if match is None:
                raise ClaimError(f"cannot read {text[position:]!r}")
            kind = str(match.lastgroup)
            self.tokens.append((kind, match[kind]))
            position = match.end()
        self.position = 0
        self.references: list[_Reference] = []

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.position] if self.position < len(self.tokens) else ("end", "")

    def take(self, expected: str | None = None) -> tuple[str, str]:
        token = self.peek()
        if expected is not None and token[1] != expected:
            raise ClaimError(f"expected {expected!r}, found {token[1]!r}")
        self.position += 1
        return token

    def comparison(self) -> _Comparison:
        terms, operators = [self.sum()], []
        while self.peek()[1] in COMPARISONS:
            operators.append(self.take()[1])
            terms.append(self.sum())
        if not operators or self.peek()[0] != "end":
            raise ClaimError(f"expected a comparison, found {self.peek()[1]!r}")
        return _Comparison(tuple(terms), tuple(operators), tuple(self.references))

    def sum(self) -> _Term:
        term = self.product()
        while self.peek()[1] in ("+", "-"):
            apply = operator.add if self.take()[1] == "+" else operator.sub
            term = _arithmetic(term, self.product(), apply)
        return term

    def product(self) -> _Term:
        term = self.atom()
        while self.peek()[1] == "*":
            self.take()
            term = _arithmetic(term, self.atom(), operator.mul)
        return term

    def atom(self) -> _Term:
        kind, text = self.take()
        if kind == "ref":
            cells, term = _reference(text)
            self.references.append(cells)
            return term
        if kind == "number":
            return lambda tables, default, bindings: float(text)
        if kind == "key":
            return lambda tables, default, bindings: float(bindings[text[1:-1]])
        if text == "(":
            term = self.sum()
            self.take(")")
            return term
        if kind == "name" and text in FUNCTIONS:
            self.take("(")
            arguments = [self.sum()]
            while self.peek()[1] == ",":
                self.take()
                arguments.append(self.sum())
            self.take(")")
            return _call(text, arguments)
        raise ClaimError(f"unexpected {text!r}")


def _arithmetic(left: _Term, right: _Term, apply: Callable[[float, float], float]) -> _Term:
    return lambda tables, default, bindings: apply(
        _scalar(left(tables, default, bindings)), _scalar(right(tables, default, bindings))
    )


@dataclass(frozen=True)
class Clause:
    """One clause of a predicate."""

    text: str
    comparisons: tuple[_Comparison, ...]
    """Joined by `and`."""
    quantifier: str
    keys: tuple[tuple[str, tuple[str, ...]], ...]
    """Keys that are enumerated, each with its listed values; without a list, all values of the
    tables."""

    def tables(self, default: str) -> list[str]:
        named = re.findall(r"(?<!print:)(table\d+):", self.text)
        return list(dict.fromkeys(named)) or [default]

    @property
    def printed(self) -> list[str]:
        """The tables whose numbers in print it reads; `Tables` has them as `print:table2`."""
        return list(dict.fromkeys(re.findall(r"print:(table\d+):", self.text)))

    def combinations(self, tables: Tables, default: str) -> Iterator[Bindings]:
        """All bindings of the quantified keys."""
        options = []
        for key, listed in self.keys:
            cells = [value for name in self.tables(default) for value in tables.get(name, ())]
            occurring = (
                [v.row for v in cells]
                if key == "row"
                else [v.keys[key] for v in cells if key in v.keys]
            )
            options.append([(key, value) for value in listed or tuple(dict.fromkeys(occurring))])
        for combination in itertools.product(*options):
            yield dict(combination)

    def outcome(self, tables: Tables, default: str, bindings: Bindings) -> bool | None:
        """Whether the comparisons hold; None if a value is missing."""
        try:
            return all(c.holds(tables, default, bindings) for c in self.comparisons)
        except MissingError:
            return None

    def settled(self, tables: Tables, default: str, bindings: Bindings) -> bool | None:
        """Whether every value that the comparisons read had settled when its run ended; False if
        one was cut short, else None if one's history does not tell.
        """
        read = [
            value.settled for c in self.comparisons for value in c.read(tables, default, bindings)
        ]
        return False if False in read else None if None in read else True

    def not_judged(self, tables: Tables, default: str, bindings: Bindings) -> str:
        """Why the comparisons say nothing, in words: they set means over another share of their
        values beside each other, or costs of runs that learnt nothing. Else empty.
        """
        for comparison in self.comparisons:
            read = comparison.read(tables, default, bindings)
            if any(value.learnt is False for value in read):
                return AT_CHANCE
            shares: dict[str, set[float]] = {}
            for value in read:
                if value.counted is not None:
                    defined, of = value.counted
                    shares.setdefault(value.metric, set()).add(defined / of if of else 0.0)
            if any(len(of_metric) > 1 for of_metric in shares.values()):
                return UNLIKE
        return ""


def parse(predicate: str) -> list[Clause]:
    """The clauses of a predicate. Raises ClaimError if it is not in the grammar."""
    clauses = []
    for text in predicate.split(" ; "):
        body, quantifier, tail = [
            *re.split(r"\s+for\s+(all|some|most)\s+", text.strip(), maxsplit=1),
            "",
            "",
        ][:3]
        keys = []
        for part in re.split(r"\s+and\s+", tail) if tail else ():
            key, _, values = part.partition(" in ")
            keys.append(
                (
                    key.strip(),
                    (
                        tuple(v.strip() for v in values.strip().strip("()").split(","))
                        if values
                        else ()
                    ),
                )
            )
        comparisons = tuple(_Parser(part).comparison() for part in re.split(r"\s+and\s+", body))
        clauses.append(Clause(text.strip(), comparisons, quantifier, tuple(keys)))
    return clauses
