"""Predicates: read by the grammar of `results/published/README.md`, and held against values.

A predicate is a list of clauses separated by `;`. A clause is a comparison, or a chain of them, and
may end in `for all | some | most KEYS`. Once its cells and keys are names, a comparison is one of
Python's, and read by `ast`.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import math
import operator
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fedtables.metrics.correlation import pearson, spearman
from fedtables.reports.tables.margins import SAME_SHARE, Standing, seeds_needed, standing
from fedtables.results.published import parse_column

Bindings = dict[str, str]
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
    negligible: float = 0.0
    """How small a difference may count as none: a point, in its table's unit. Of what a run costs
    none; infinite where print alone tells."""

    @property
    def place(self) -> tuple[str, frozenset[tuple[str, str]], str]:
        """Its row, column and metric."""
        return self.row, frozenset(self.keys.items()), self.metric


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


Operand = str | list[tuple[str, float]]
"""The name of a row, or numbers, each with its row's name, which a plain number lacks."""


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


def _named(operand: Operand) -> list[tuple[str, float]]:
    """The numbers of an operand with their names. Raises MissingError if there are none: of what
    was not measured no number is known; ClaimError for the name of a row.
    """
    if isinstance(operand, str):
        raise ClaimError(f"expected a number, found {operand!r}")
    if not operand:
        raise MissingError
    return operand


def _scalar(operand: Operand) -> float:
    """The only number of an operand."""
    [(_, number), *others] = _named(operand)
    if others:
        raise ClaimError(f"expected one number, found {operand!r}")
    return number


def _all(operands: Sequence[Operand]) -> list[float]:
    """The numbers of those operands that have any."""
    numbers = [number for each in operands if each for _, number in _named(each)]
    if not numbers:
        raise MissingError
    return numbers


def _correlated(
    coefficient: Callable[[Sequence[float], Sequence[float]], float],
) -> Callable[[Sequence[Operand]], float]:
    """The coefficient of two operands over the names that both have. Raises MissingError for too
    few, or the same value in all of them.
    """

    def compute(operands: Sequence[Operand]) -> float:
        first, second = (dict(_named(operand)) for operand in operands)
        names = [name for name in first if name in second]
        found = coefficient([first[name] for name in names], [second[name] for name in names])
        if math.isnan(found):
            raise MissingError
        return found

    return compute


FUNCTIONS: Mapping[str, Callable[[Sequence[Operand]], float | str]] = {
    "max": lambda operands: max(_all(operands)),
    "min": lambda operands: min(_all(operands)),
    "mean": lambda operands: statistics.fmean(_all(operands)),
    "abs": lambda operands: abs(_scalar(operands[0])),
    "count": lambda operands: float(sum(len(_named(operand)) for operand in operands)),
    "argmax": lambda operands: max(_named(operands[0]), key=operator.itemgetter(1))[0],
    "pearson": _correlated(pearson),
    "spearman": _correlated(spearman),
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

    def evaluate(self, node: ast.expr, scope: Scope) -> Operand:
        """What a part of the tree is."""
        if isinstance(node, ast.Name) and isinstance(cells := self.names[node.id], _Cells):
            values = cells.values(scope)
            return [(v.keys[cells.over] if cells.over else v.row, v.number) for v in values]
        if isinstance(node, ast.Name):
            found: float | str = float(scope.bindings[str(self.names[node.id])])
        elif isinstance(node, ast.BinOp):
            sides = (_scalar(self.evaluate(side, scope)) for side in (node.left, node.right))
            found = ARITHMETIC[type(node.op)](*sides)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found = FUNCTIONS[node.func.id]([self.evaluate(each, scope) for each in node.args])
        else:
            found = float(ast.literal_eval(node))
        return found if isinstance(found, str) else [("", found)]

    def margins(self, scope: Scope) -> list[float]:
        """For each operator how far it is from failing (negative: it fails); infinitely far where
        names of rows are compared. Raises MissingError where a value is missing.
        """
        operands = [self.evaluate(node, scope) for node in (self.tree.left, *self.tree.comparators)]
        pairs = zip(self.tree.ops, itertools.pairwise(operands), strict=True)
        return [_margin(type(op), *pair) for op, pair in pairs]

    @property
    def _strict(self) -> list[bool]:
        return [isinstance(op, ast.Lt | ast.Gt | ast.NotEq) for op in self.tree.ops]

    def holds(self, scope: Scope) -> bool:
        found = zip(self.margins(scope), self._strict, strict=True)
        return all(standing([margin], strict) is Standing.ABOVE for margin, strict in found)

    def standings(self, seeds: Sequence[Scope], printed: Scope | None = None) -> list[Standing]:
        """Where each operator's margin stands over `seeds`, beside those in print. Raises
        MissingError if no seed has all values.
        """
        over_seeds, same = self.over_seeds(seeds), self.sameness(seeds, printed)
        return [*map(standing, over_seeds, self._strict, same)]

    def further_seeds(self, seeds: Sequence[Scope], printed: Scope | None = None) -> float:
        """How many more seeds would close all operators' margins. Raises MissingError as
        `standings`.
        """
        pairs = zip(self.over_seeds(seeds), self.sameness(seeds, printed), strict=True)
        stand = self.standings(seeds, printed)
        return max(
            seeds_needed(margins, same) - len(margins) if where is Standing.OPEN else 0
            for (margins, same), where in zip(pairs, stand, strict=True)
        )

    def over_seeds(self, seeds: Sequence[Scope]) -> list[tuple[float, ...]]:
        """For each operator its margins, of the seeds that have all values. Raises MissingError if
        none has.
        """
        found = []
        for scope in seeds:
            with contextlib.suppress(MissingError):
                found.append(self.margins(scope))
        if not found:
            raise MissingError
        return [*zip(*found, strict=True)]

    def sameness(self, seeds: Sequence[Scope], printed: Scope | None) -> list[float]:
        """For each operator how small a difference counts as none: `SAME_SHARE` of the printed one,
        or what is negligible of its values if that is less. 0, so none, where neither is known, and
        where the comparison itself has a number.
        """
        nodes = [*ast.walk(self.tree), *self.tree.ops]
        if any(isinstance(node, (ast.Constant, *EQUAL)) for node in nodes):
            return [0.0] * len(self.tree.ops)
        most = min((v.negligible for scope in seeds for v in self.read(scope)), default=0.0)
        in_print = [math.inf] * len(self.tree.ops)
        if printed is not None:
            with contextlib.suppress(MissingError):
                in_print = self.margins(printed)
        found = [min(most, SAME_SHARE * abs(margin)) for margin in in_print]
        return [same if math.isfinite(same) else 0.0 for same in found]

    @property
    def _cells(self) -> list[_Cells]:
        return [meant for meant in self.names.values() if isinstance(meant, _Cells)]

    def rivals(self, scope: Scope) -> list[Value]:
        """The values of which one alone can make it fail: those under `max` of what must be lower,
        and under `min` of what must be higher.
        """
        signs = [SIGNS.get(type(op)) for op in self.tree.ops]
        if signs not in ([-1], [1]):
            return []
        higher, lower = (self.tree.left, *self.tree.comparators)[:: signs[0]]
        found: list[Value] = []
        for side, function in ((lower, "max"), (higher, "min")):
            nodes = list(ast.walk(side))
            calls = {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}
            if calls == {function} and not any(isinstance(node, ast.Sub) for node in nodes):
                cells = (self.names.get(node.id) for node in nodes if isinstance(node, ast.Name))
                found += [v for c in cells if isinstance(c, _Cells) for v in c.values(scope)]
        return found

    def read(self, scope: Scope) -> list[Value]:
        """Every value that it reads."""
        return [value for each in self._cells for value in each.values(scope)]

    def measured(self, scope: Scope) -> list[tuple[str, Value]]:
        """Every value that it reads of ours, with its table."""
        ours = [each for each in self._cells if not each.table.startswith("print:")]
        return [(each.table or scope.table, v) for each in ours for v in each.values(scope)]


def _margin(op: type[ast.cmpop], first: Operand, second: Operand) -> float:
    """How far a single comparison is from failing."""
    if isinstance(first, str) or isinstance(second, str):
        if op not in EQUAL:
            raise ClaimError("names of rows are equal or not, nothing else")
        return math.inf if (first == second) == (op is ast.Eq) else -math.inf
    a, b = _scalar(first), _scalar(second)
    difference = 0.0 if a == b else a - b  # of two infinite ones too
    if op in SIGNS:
        return SIGNS[op] * difference
    return abs(difference) if op is ast.NotEq else -abs(difference)


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
        cells = [value for name in self.tables(default) for value in tables.get(name, ())]
        there = [{**value.keys, "row": value.row} for value in cells]
        options = [
            listed or dict.fromkeys(keys[key] for keys in there if key in keys)
            for key, listed in self.keys
        ]
        for combination in itertools.product(*options):
            yield dict(zip((key for key, _ in self.keys), combination, strict=True))

    def outcome(self, scope: Scope) -> bool | None:
        """Whether the comparisons hold; None if a value is missing."""
        try:
            return all(comparison.holds(scope) for comparison in self.comparisons)
        except MissingError:
            return None


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
