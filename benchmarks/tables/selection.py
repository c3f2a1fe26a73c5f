"""What of a table to run: the options that choose rows, columns and settings, read and checked."""

import dataclasses
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.spec import (
    AS_CLASS,
    UNLISTED,
    Paper,
    Row,
    Scalar,
    SpecError,
    Table,
)
from fedtables.federation.execution import DEFAULT, Execution
from fedtables.results.files import digest
from fedtables.results.names import near, printable
from fedtables.results.numbers import (
    MOST,
    MOST_WHOLE,
    finite_number,
    is_infinite,
    shortened,
    whole_number,
)

Texts = str | Sequence[str]
"""One text, or several."""


@dataclass(frozen=True)
class Selection:
    """What of a table to run, as the command line asks for it."""

    profile: str = "smoke"
    protocol: str = "paper"
    seeds: tuple[int, ...] = (0,)
    only: Mapping[str, Texts] | None = None
    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    require_real: bool = False
    device: str = "cpu"
    threads: int = 1
    execution: Execution = DEFAULT
    overrides: tuple[tuple[str, Scalar], ...] = ()
    """Settings of the user's own, from `--set`."""
    may_lose: bool = False
    """Whether a table's files may lose cells that were in them, from `--replace`."""

    @property
    def variant(self) -> str:
        """What sets this selection's files apart from the table's own: protocol, overrides,
        execution; empty for none.
        """
        overridden = f"set-{digest(self.overrides)[:8]}" if self.overrides else ""
        protocol = self.protocol if self.protocol != "paper" else ""
        return ".".join(part for part in (protocol, overridden, self.execution.label) if part)


def typed_settings(given: Mapping[str, Scalar], paper: Paper) -> tuple[tuple[str, Scalar], ...]:
    """`{"local.epochs": 2}`, or texts of values, as settings of `paper`, or fields of methods.

    Raises SpecError for an unknown one or a value of another kind.
    """
    known = _known_values(paper)
    overrides: dict[str, Scalar] = {}
    for asked, value in given.items():
        name = registry.current_setting(asked)
        method = name.partition(".")[0]
        if method in registry.methods():
            for parameter in dataclasses.fields(registry.find_method(method).load()):
                if parameter.init:
                    known.setdefault(f"{method}.{parameter.name}", []).append(parameter.default)
        if name not in known:
            raise SpecError(f"--set {name}: {paper.key} has no such setting; {near(name, known)}")
        try:
            overrides[name] = _typed_like(known[name], value)
        except ValueError as error:
            raise SpecError(f"--set {name}={value}: it must be {error}") from None
    return tuple(sorted(overrides.items()))


def _known_values(paper: Paper) -> dict[str, list[Any]]:
    """The values that each setting of a paper has, in whatever column, row, profile and
    protocol.
    """
    known: dict[str, list[Any]] = {name: [value] for name, value in UNLISTED.items()}
    for setting in paper.every_setting:
        for value in setting.values:
            several = value.values() if isinstance(value, Mapping) else [value]
            values = known.setdefault(setting.name, [])
            values += [v for v in several if v not in (None, AS_CLASS)]
    for table in paper.tables:
        for name, value in table.fixed.items():
            known.setdefault(name, []).append(value)
        for row in (*table.rows, *table.offered):
            for name, value in row.config.items():
                if name in known:
                    known[name].append(value)
    return known


def _typed_like(known: Sequence[Any], given: Scalar) -> Scalar:
    """What is given, or its text, as a value of the kind of those that are known, the first above
    all: infinite or below 0 only where one of them is. Raises ValueError with what is wanted.
    """
    example = known[0]
    if isinstance(example, bool):
        if not isinstance(given, bool) and given not in ("true", "false"):
            raise ValueError("true or false")
        return given is True or given == "true"
    if isinstance(example, str):
        if not str(given).isprintable():
            raise ValueError("a text without control characters")
        return str(given)
    numbers = [value for value in known if isinstance(value, int | float)]
    signed = any(value < 0 for value in numbers)
    least = "" if signed else " from 0"
    if isinstance(example, int):
        try:
            return whole_number(given, -MOST_WHOLE if signed else 0)
        except ValueError:
            raise ValueError(f"a whole number{least}, at most {MOST_WHOLE}") from None
    if math.inf in numbers and is_infinite(str(given)):
        return math.inf
    try:
        return finite_number(given, -MOST if signed else 0)
    except ValueError:
        raise ValueError(f"a number{least}, at most {MOST:g}") from None


def listed(texts: Texts, known: Collection[str]) -> list[str]:
    """The values that texts mean, each one or several as `a,b`: what is one of the `known` ones as
    it stands is that one, as `train=b,f,i` is where three sites train together.
    """
    parts = (texts,) if isinstance(texts, str) else texts
    return [value for part in parts for value in ([part] if part in known else part.split(","))]


def parse_methods(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """`"+mine,-global-avg"` as names to add and rows to drop; an empty text names none. Raises
    SpecError for a name without sign, and for none between commas.
    """
    add: list[str] = []
    drop: list[str] = []
    for name in (part.strip() for part in text.split(",") if text):
        if not name.strip("+-"):
            raise SpecError(
                "--methods takes +name to add and -name to drop, separated by commas; got"
                f" {shortened(text)}"
            )
        if name[0] not in "+-":
            raise SpecError(
                f"--methods takes +name to add and -name to drop; did you mean +{name} or -{name}?"
            )
        (add if name[0] == "+" else drop).append(name[1:])
    return tuple(add), tuple(drop)


def table_rows(table: Table, selection: Selection) -> tuple[Row, ...]:
    """The table's rows with `--methods` applied. Raises SpecError for a name that is neither row
    nor method.
    """
    rows = list(table.rows)
    for name in selection.drop:
        kept = [row for row in rows if name not in (row.key, row.method)]
        if len(kept) == len(rows):
            raise SpecError(
                f"--methods -{name}: {table.key} has no such row;"
                f" {near(name, [r.key for r in table.rows])}"
            )
        rows = kept
    offered = {row.key: row for row in table.offered}
    for name in selection.add:
        if name in [row.key for row in rows]:
            raise SpecError(f"--methods +{name}: {table.key} has that row already")
        if name in offered:
            rows.append(offered[name])
            continue
        entry = registry.find_method(name)
        if refusal := registry.find_measure(table.measure).takes_no_method:
            raise SpecError(
                f"--methods +{name}: {table.key} {refusal}, no method can be added to it"
            )
        method = entry.load()
        title = printable(method.title) or name
        rows.append(Row(name, entry.name, title, upper_bound=bool(method.oracle)))
    if not rows:
        raise SpecError("--methods left no row")
    return tuple(rows)


def matches(row: Row, column: Mapping[str, str], wanted: Mapping[str, Collection[str]]) -> bool:
    """Whether a row in a column has one of the `wanted` values of every key."""
    facts = {"row": row.key, "method": row.method, **column}
    return all(facts.get(key, "") in values for key, values in wanted.items())


def _spelled(value: str, known: Iterable[str]) -> str:
    """A number as the table spells it, 10 as 10.0; any other text as it is."""
    try:
        return next((other for other in known if float(other) == float(value)), value)
    except ValueError:
        return value


def wanted_values(
    table: Table, rows: Sequence[Row], only: Mapping[str, Texts]
) -> dict[str, list[str]]:
    """By key the values that `--only` names. Raises SpecError for a key or a value that the table
    does not have.
    """
    values: dict[str, set[str]] = {"row": {r.key for r in rows}, "method": {r.method for r in rows}}
    for column in table.columns:
        for key, value in column.items():
            values.setdefault(key, set()).add(value)
    wanted = {}
    for key, text in only.items():
        if key not in values:
            raise SpecError(
                f"--only {key}=...: {table.key} has no key {key!r}; {near(key, values)}"
            )
        asked = listed(text, values[key])
        asked = [registry.current(value) for value in asked] if key == "method" else asked
        wanted[key] = [_spelled(value, values[key]) for value in asked]
        for value in wanted[key]:
            if value not in values[key]:
                raise SpecError(
                    f"--only {key}={value}: {table.key} has no such value;"
                    f" {near(value, values[key])}"
                )
    return wanted
