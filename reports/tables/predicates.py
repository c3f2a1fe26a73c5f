"""Predicates: read by the grammar of `results/published/README.md`, and held against values.

A predicate is a list of clauses separated by `;`. A clause is a comparison, or a chain of them, and
may end in `for all | some | most KEYS`. Once its cells and keys are names, a comparison is one of
Python's, and read by `ast`.
"""

from __future__ import annotations

import ast
import functools
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
AT_CHANCE = "accuracy at chance"
UNLIKE = "means over different shares of their values"
"""Why a comparison is not judged."""
_CELLS = re.compile(
    r"(?:(?P<table>(?:print:)?table\d+):)?(?P<metric>[a-z][a-z0-9-]*)\[(?P<cells>[^\]]*)\]"
    r"|\{(?P<key>[a-z0-9-]+)\}"
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
class Scope:
    """What a comparison is held against."""

    tables: Tables
    table: str
    """That of cells that name none."""
    bindings: Bindings
    """The quantified keys."""


_Operand = float | str | list[tuple[str, float]]


@dataclass(frozen=True)
class _Cells:
    """`table2:accuracy[a|b @ dataset=mnist]`: the values of a metric in some rows, keys bound or
    fixed. `print:table2:` names the printed values.

    With `key=*` among the fixed keys, values go by that key instead of by their row: `argmax` then
    gives one of its values, and lists are correlated over them.
    """

    table: str
    metric: str
    rows: str
    fixed: Mapping[str, str]
    over: str
    """The key that values go by; empty for their row."""

    @classmethod
    def parse(cls, found: re.Match[str]) -> _Cells:
        """Raises ClaimError for more than one `key=*`."""
        rows, _, fixed_text = found["cells"].partition(" @ ")
        fixed = parse_column(fixed_text)
        starred = [key for key, value in fixed.items() if value == "*"]
        if len(starred) > 1:
            raise ClaimError(f"more than one key=* in {found[0]!r}: values have one name")
        rest = {key: value for key, value in fixed.items() if key not in starred}
        return cls(found["table"] or "", found["metric"], rows.strip(), rest, "".join(starred))

    def values(self, scope: Scope) -> list[Value]:
        rows = self.rows.replace("$row", scope.bindings.get("row", "$row"))
        names = frozenset(rows.removeprefix("* - ").split("|"))
        left_out = {"row", self.over, *self.fixed}
        bound = {key: value for key, value in scope.bindings.items() if key not in left_out}
        return [
            value
            for value in scope.tables.get(self.table or scope.table, ())
            if value.metric == self.metric
            and (rows == "*" or (value.row in names) != rows.startswith("* - "))
            and (not self.over or self.over in value.keys)
            and all(value.keys.get(key) == wanted for key, wanted in self.fixed.items())
            and all(value.keys.get(key, wanted) == wanted for key, wanted in bound.items())
        ]

    def evaluate(self, scope: Scope) -> _Operand:
        return [
            (value.keys[self.over] if self.over else value.row, value.number)
            for value in self.values(scope)
        ]


def _scalar(value: _Operand) -> float:
    """The only value of an operand."""
    if isinstance(value, list) and not value:
        raise MissingError
    if isinstance(value, str) or (isinstance(value, list) and len(value) > 1):
        raise ClaimError(f"expected one number, found {value!r}")
    return value[0][1] if isinstance(value, list) else value


def _all(values: Sequence[_Operand]) -> list[float]:
    """The numbers of all operands."""
    numbers: list[float] = []
    for value in values:
        numbers += [v for _, v in value] if isinstance(value, list) else [_scalar(value)]
    if not numbers:
        raise MissingError
    return numbers


def _listed(value: _Operand) -> list[tuple[str, float]]:
    """The values of an operand with their names. Raises MissingError if there are none: of what was
    not measured no number is known.
    """
    if not isinstance(value, list) or not value:
        raise MissingError
    return value


def _correlation(
    coefficient: Callable[[Sequence[float], Sequence[float]], float], values: Sequence[_Operand]
) -> float:
    first, second = (dict(_listed(value)) for value in values)
    names = [name for name in first if name in second]
    found = coefficient([first[name] for name in names], [second[name] for name in names])
    if math.isnan(found):
        raise MissingError  # too few rows, or the same value in all of them
    return found


FUNCTIONS: Mapping[str, Callable[[Sequence[_Operand]], float | str]] = {
    "max": lambda values: max(_all(values)),
    "min": lambda values: min(_all(values)),
    "mean": lambda values: statistics.fmean(_all(values)),
    "abs": lambda values: abs(_scalar(values[0])),
    "count": lambda values: float(sum(len(_listed(value)) for value in values)),
    "argmax": lambda values: max(_listed(values[0]), key=operator.itemgetter(1))[0],
    "pearson": functools.partial(_correlation, pearson),
    "spearman": functools.partial(_correlation, spearman),
}
ARITHMETIC: Mapping[type[ast.AST], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}
SIGNS: Mapping[type[ast.AST], int] = {ast.Lt: -1, ast.LtE: -1, ast.Gt: 1, ast.GtE: 1}
EQUAL = (ast.Eq, ast.NotEq)
GRAMMAR = (ast.Compare, ast.BinOp, ast.Call, ast.Constant, ast.Name, ast.Load)
"""What a comparison is made of, beside the operators."""


@dataclass(frozen=True)
class Comparison:
    """A chain such as a < b <= c."""

    tree: ast.Compare
    names: Mapping[str, _Cells | str]
    """What names in the tree stand for: cells, or keys whose values are numbers."""

    @classmethod
    def parse(cls, text: str) -> Comparison:
        """Raises ClaimError for a text that is no comparison in the grammar."""
        names: dict[str, _Cells | str] = {}

        def name(found: re.Match[str]) -> str:
            names[f"_{len(names)}"] = found["key"] or _Cells.parse(found)
            return f"_{len(names) - 1}"

        try:
            tree = ast.parse(_CELLS.sub(name, text).strip(), mode="eval").body
        except SyntaxError as error:
            raise ClaimError(f"cannot read {text!r}: {error.msg}") from error
        if not isinstance(tree, ast.Compare):
            raise ClaimError(f"expected a comparison, found {text!r}")
        for node in ast.walk(tree):
            known = not isinstance(node, ast.Name) or node.id in {*names, *FUNCTIONS}
            if not known or not isinstance(node, (*GRAMMAR, *ARITHMETIC, *SIGNS, *EQUAL)):
                raise ClaimError(f"unexpected {ast.unparse(node)!r} in {text!r}")
        return cls(tree, names)

    def evaluate(self, node: ast.expr, scope: Scope) -> _Operand:
        """What a part of the tree is."""
        if isinstance(node, ast.Name):
            meant = self.names[node.id]
            return float(scope.bindings[meant]) if isinstance(meant, str) else meant.evaluate(scope)
        if isinstance(node, ast.BinOp):
            sides = (_scalar(self.evaluate(side, scope)) for side in (node.left, node.right))
            return ARITHMETIC[type(node.op)](*sides)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return FUNCTIONS[node.func.id]([self.evaluate(each, scope) for each in node.args])
        return float(ast.literal_eval(node))

    def margins(self, scope: Scope) -> list[float] | bool:
        """For each operator how far it is from failing (negative: it fails); a truth value for
        comparisons of rows.
        """
        values = [self.evaluate(node, scope) for node in (self.tree.left, *self.tree.comparators)]
        operators = [type(op) for op in self.tree.ops]
        if any(isinstance(value, str) for value in values):
            if not set(operators) <= {*EQUAL}:
                raise ClaimError("names of rows are equal or not, nothing else")
            pairs = zip(itertools.pairwise(values), operators, strict=True)
            return all((a == b) == (op is ast.Eq) for (a, b), op in pairs)
        numbers = map(_scalar, values)
        differences = [0.0 if a == b else a - b for a, b in itertools.pairwise(numbers)]
        return [
            SIGNS[op] * d if op in SIGNS else abs(d) if op is ast.NotEq else -abs(d)
            for d, op in zip(differences, operators, strict=True)
        ]

    def holds(self, scope: Scope) -> bool:
        margins = self.margins(scope)
        if isinstance(margins, bool):
            return margins
        # Rounding of the printed digits must not decide `<=`: compare with a little slack where
        # equality is allowed.
        return all(
            m > 1e-12 if isinstance(op, ast.Lt | ast.Gt | ast.NotEq) else m >= -1e-12
            for m, op in zip(margins, self.tree.ops, strict=True)
        )

    def read(self, scope: Scope) -> list[Value]:
        """Every value that it reads."""
        cells = [meant for meant in self.names.values() if isinstance(meant, _Cells)]
        return [value for each in cells for value in each.values(scope)]


@dataclass(frozen=True)
class Clause:
    """One clause of a predicate."""

    text: str
    comparisons: tuple[Comparison, ...]
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

    def outcome(self, scope: Scope) -> bool | None:
        """Whether the comparisons hold; None if a value is missing."""
        try:
            return all(c.holds(scope) for c in self.comparisons)
        except MissingError:
            return None

    def settled(self, scope: Scope) -> bool | None:
        """Whether every value that the comparisons read had settled when its run ended; False if
        one was cut short, else None if one's history does not tell.
        """
        read = [value.settled for c in self.comparisons for value in c.read(scope)]
        return False if False in read else None if None in read else True

    def not_judged(self, scope: Scope) -> str:
        """Why the comparisons say nothing, in words: they set means over another share of their
        values beside each other, or costs of runs that learnt nothing. Else empty.
        """
        for comparison in self.comparisons:
            read = comparison.read(scope)
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
    for text in map(str.strip, predicate.split(" ; ")):
        body, *quantified = re.split(r"\s+for\s+(all|some|most)\s+", text, maxsplit=1)
        quantifier, tail = quantified or ("", "")
        keys = []
        for part in filter(None, re.split(r"\s+and\s+", tail)):
            key, _, listed = part.partition(" in ")
            values = [value.strip() for value in listed.strip().strip("()").split(",")]
            keys.append((key.strip(), tuple(filter(None, values))))
        comparisons = map(Comparison.parse, re.split(r"\s+and\s+", body))
        clauses.append(Clause(text, tuple(comparisons), quantifier, tuple(keys)))
    return clauses
