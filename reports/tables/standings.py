"""What the tables of a scorecard say of each method: its numbers by condition, what it needs and
exchanges, and its mean rank.

A condition is a column of such a table and a set of public images. A method that uses none has one
run, in the column `public=none`, which stands beside those of the others in every condition of the
same column.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from fedtables.metrics.names import AT_COST, CLIENT_FLOPS, MEGABYTES_DOWN, MEGABYTES_UP, PROPERTY
from fedtables.reports.tables.ranking import (
    Spot,
    complete,
    critical_difference,
    friedman,
    mean_ranks,
    spots,
)
from fedtables.reports.tables.run_costs import ACCURACY, at_cost
from fedtables.reports.tables.table import ShownTable, broken_rows, cut_short, fullest, share_of
from fedtables.results.published import parse_column, without
from fedtables.results.record import OK
from fedtables.results.store import Line

PUBLIC, NO_PUBLIC = "public", "none"
NETWORKS, ALIKE = "networks", "alike"
EPSILON = "epsilon"
AT_EPSILON = f"{ACCURACY}-at-epsilon-"
"""Begins the name of accuracy under differential privacy, which ends in its epsilon."""
BOTH_WAYS = "megabytes"
"""The cost of bytes up and down together."""


@dataclass(frozen=True)
class Condition:
    """Where methods are compared."""

    profile: str
    table: str
    """`league/mnist`."""
    column: str
    """`distribution=iid`."""
    networks: str
    """Of the clients."""
    public: str

    @property
    def key(self) -> str:
        networks = "" if self.networks == ALIKE else f" {NETWORKS}={self.networks}"
        return f"{self.profile} {self.table} {self.column}{networks} {PUBLIC}={self.public}"


@dataclass
class Standing:
    """One row over all conditions."""

    row: str
    title: str
    bound: bool
    """Whether it uses what no real server has."""
    method: str = ""
    """The name of its method, which several rows may have."""
    broken: str = ""
    """How it breaks the contract; empty where it does not."""
    properties: dict[str, bool] = field(default_factory=dict)
    """Where its runs differ, the value that `PESSIMIST` gives."""
    sends: set[str] = field(default_factory=set)
    """Kinds of payload that leave a client."""
    receives: set[str] = field(default_factory=set)
    """Kinds of payload that come down to a client."""

    @property
    def ranked(self) -> bool:
        """Whether it can be ranked at all: no bound, and no breaker of the contract."""
        return not (self.bound or self.broken)


PESSIMIST: Mapping[str, bool] = {
    "distillation": True,
    "param-transfer": True,
    "privacy": False,
    "asynchronous": False,
    "networks-differ": False,
}
"""The value of each property that a method has if any of its runs has it."""


NUMBER = ("row", "metric", "key", "value", "std", "n", "cut_short")
"""Of one number: a method's row, a condition's key, mean and deviation over `n` seeds (n - 1; not a
number for one), and whether any of the runs ended before what it is of had settled."""
Number = tuple[str, str, str, float, float, int, bool]


@dataclass(frozen=True)
class Standings:
    """All methods, and where they were compared."""

    conditions: tuple[Condition, ...]
    methods: tuple[Standing, ...]
    seeds: Mapping[str, int]
    """By condition's key, the fewest of any cell."""
    numbers: pd.DataFrame
    """Under `NUMBER`, each place once."""

    @property
    def ranked(self) -> tuple[Condition, ...]:
        """Where every method can be: with networks that are alike, if there are such."""
        alike = tuple(condition for condition in self.conditions if condition.networks == ALIKE)
        return alike or self.conditions

    def and_also(self, numbers: Iterable[Number]) -> Standings:
        """The same with more numbers; of several in a place the last counts."""
        every = pd.concat([self.numbers, _frame(numbers)])
        return replace(self, numbers=every.drop_duplicates([*NUMBER[:3]], keep="last"))

    def of(self, row: str, metric: str = "") -> pd.DataFrame:
        """The numbers of a row; of one metric by condition's key."""
        of_row = self.numbers[self.numbers["row"] == row]
        return of_row[of_row["metric"] == metric].set_index("key") if metric else of_row

    def cut_short(self, row: str, metric: str) -> set[str]:
        """Keys of conditions in which a metric had not settled when a run ended."""
        numbers = self.of(row, metric)
        return set(numbers.index[numbers["cut_short"]])

    def frame(self, metric: str) -> pd.DataFrame:
        """Values of the methods that can be ranked, by row and key of `ranked`."""
        rows = [method.row for method in self.methods if method.ranked]
        of_metric = self.numbers[self.numbers["metric"] == metric]
        wide = of_metric.pivot(index="row", columns="key", values="value")
        return wide.reindex(index=rows, columns=[condition.key for condition in self.ranked])

    @property
    def metrics(self) -> list[str]:
        """All metrics that any method has, in the order of the method that has most; behind them
        those at a cost, by its unit and from the least.
        """
        of_rows = [self.of(method.row)["metric"].unique() for method in self.methods]
        of_rows.sort(key=len, reverse=True)
        return sorted(dict.fromkeys(name for names in of_rows for name in names), key=_cost_of)

    def means(self, metric: str) -> pd.Series:
        """The mean over `ranked` of the methods that have a value in all of them."""
        return complete(self.frame(metric)).mean(axis="columns")


def _frame(numbers: Iterable[Number]) -> pd.DataFrame:
    kinds = (object, object, object, float, float, int, bool)
    frame = pd.DataFrame(list(numbers), columns=list(NUMBER))
    return frame.astype(dict(zip(NUMBER, kinds, strict=True)))


def standings_of(tables: Iterable[ShownTable]) -> Standings:
    """The standings over all tables together, which are of one profile."""
    conditions: dict[Condition, None] = {}
    methods: dict[str, Standing] = {}
    numbers: list[Number] = []
    at_costs: list[Number] = []
    for table in tables:
        layout, at = table.layout, _places(table)
        conditions |= dict.fromkeys(condition for of in at.values() for condition in of)
        for row, title in layout.rows.items():
            of_row = layout.methods.get(row, row)
            methods.setdefault(row, Standing(row, title, row in layout.oracles, of_row))
        for row, how in broken_rows(table.cells).items():
            methods[row].broken = how
        for line in _compared(table):
            keys = [condition.key for condition in at[line["row"], line["column"]]]
            if line["metric"] == PROPERTY and keys:
                _add_property(methods[line["row"]], line)
            elif isinstance(line["value"], float) and math.isfinite(line["value"]):
                numbers += numbers_of(line["row"], line["metric"], keys, line)
        for record in table.records:
            for kind in record.bytes_by_kind if record.status == OK else ():
                way, _, payload = kind.partition("/")
                method = methods[record.row]
                (method.sends if way == "up" else method.receives).add(payload)
        measured = {(n[0], n[2]) for n in numbers if n[1] == ACCURACY}
        at_costs += [
            (row, metric, condition.key, *cost)
            for (row, column, metric), *cost in at_cost(table.records).itertuples(name=None)
            for condition in at.get((row, column), ())
            if (row, condition.key) in measured
        ]
    found = _frame(numbers)
    seeds = {str(key): int(least) for key, least in found.groupby("key")["n"].min().items()}
    return Standings(tuple(conditions), tuple(methods.values()), seeds, found).and_also(at_costs)


def _compared(table: ShownTable) -> Iterator[Line]:
    """The lines that were measured and are no mean of fewer values than another's beside it."""
    beside: dict[tuple[str, str], list[Line]] = {}
    for line in table.cells:
        beside.setdefault((without(line["column"], PUBLIC)[0], line["metric"]), []).append(line)
    for line in table.cells:
        of = fullest(beside[without(line["column"], PUBLIC)[0], line["metric"]])
        if line["status"] == OK and (line["metric"] == PROPERTY or share_of(line) == of):
            yield line


def numbers_of(row: str, metric: str, keys: Iterable[str], line: Line) -> list[Number]:
    """The number of a CSV's line, for a row in the conditions of these keys."""
    std = math.nan if line["std"] is None else line["std"]
    return [(row, metric, key, line["value"], std, line["n"], cut_short(line)) for key in keys]


Places = Mapping[tuple[str, str], Sequence[Condition]]
"""By row and column the conditions that a run stands in."""


def _places(table: ShownTable) -> Places:
    """The conditions in which each row's run in each column stands.

    A run without public images stands in all of its partition, but for that of a row that has runs
    with public images too, or whose fit looked at an empty public set: these stand nowhere.
    """
    publics: dict[str, dict[str, None]] = {}
    with_public, looked = set(), set()
    runs = [(line, *without(line["column"], PUBLIC, PROPERTY)) for line in table.cells]
    for line, rest, pairs in runs:
        public = pairs.get(PUBLIC, NO_PUBLIC)
        if public != NO_PUBLIC:
            with_public.add((line["row"], rest))
            publics.setdefault(rest, {})[public] = None
        if pairs.get(PROPERTY) == "distillation" and line["value"] == "yes":
            looked.add((line["row"], rest, public))
    places = {}
    for line, rest, pairs in runs:
        public = pairs.get(PUBLIC, NO_PUBLIC)
        nowhere = (line["row"], rest) in with_public or (line["row"], rest, public) in looked
        all_of_it = [] if nowhere else list(publics.get(rest, [NO_PUBLIC]))
        where, networks = without(rest, NETWORKS)
        alike = networks.get(NETWORKS, ALIKE)
        places[line["row"], line["column"]] = [
            Condition(line["profile"], table.layout.key, where, alike, other)
            for other in (all_of_it if public == NO_PUBLIC else [public])
        ]
    return places


def _add_property(method: Standing, line: Line) -> None:
    """Have what a line says of a property; where lines differ, what `PESSIMIST` says."""
    name, holds = parse_column(line["column"])[PROPERTY], line["value"] == "yes"
    if name not in method.properties or holds == PESSIMIST.get(name):
        method.properties[name] = holds


def ranking(found: Standings) -> dict[str, Any]:
    """Mean ranks by accuracy of all methods that have one in every condition of `found.ranked`,
    with Friedman's p-value and the critical difference.
    """
    known = found.frame(ACCURACY)
    values = complete(known)
    return {
        "metric": ACCURACY,
        "mean_rank": {row: float(rank) for row, rank in mean_ranks(values).items()},
        "conditions": values.shape[1],
        "friedman_p": _finite(friedman(values)),
        "critical_difference": _finite(critical_difference(*values.shape)),
        "not_ranked": sorted(set(known.index) - set(values.index)),
        "broken": [method.row for method in found.methods if method.broken],
    }


def costs(found: Standings) -> dict[str, pd.Series]:
    """What methods cost, by name: megabytes of both ways together, and work of clients in TFLOP;
    means over conditions, of the methods that have a value in all of them.
    """
    both = found.means(MEGABYTES_UP) + found.means(MEGABYTES_DOWN)
    named = {BOTH_WAYS: both, CLIENT_FLOPS: found.means(CLIENT_FLOPS)}
    return {name: values.dropna() for name, values in named.items() if len(values.dropna())}


def at_epsilon(found: Standings) -> dict[str, pd.Series]:
    """Accuracy under differential privacy by epsilon, the least first: means over those conditions
    of `found.ranked` in which every method that has any has one at every epsilon that it has.
    """
    names = [name for name in found.metrics if name.startswith(AT_EPSILON)]
    frames = {
        name.removeprefix(AT_EPSILON): found.frame(name).dropna(how="all")
        for name in sorted(names, key=lambda name: float(name.removeprefix(AT_EPSILON)))
    }
    keys = [c.key for c in found.ranked if all(f[c.key].notna().all() for f in frames.values())]
    if not keys:
        return {}
    return {e: f[keys].mean(axis="columns") for e, f in frames.items() if len(f)}


def planes(found: Standings) -> dict[str, tuple[Spot, ...]]:
    """Methods by what they cost and their accuracy, by the cost's name: those of `costs`, and
    `epsilon`, where a method has a place at each epsilon that it was run at (`at_epsilon`).
    """
    gains = found.means(ACCURACY)
    ranked = {condition.key for condition in found.ranked}

    def is_short(row: str, metric: str = ACCURACY) -> bool:
        return not ranked.isdisjoint(found.cut_short(row, metric))

    drawn = {
        name: spots(
            (row, values[row], gains[row], is_short(row))
            for row in values.index
            if row in gains.index
        )
        for name, values in costs(found).items()
    }
    drawn[EPSILON] = spots(
        (row, float(epsilon), values[row], is_short(row, f"{AT_EPSILON}{epsilon}"))
        for epsilon, values in at_epsilon(found).items()
        for row in values.index
    )
    return {name: places for name, places in drawn.items() if places}


def fronts(found: Standings) -> dict[str, list[str]]:
    """The methods that nothing beats in accuracy and a cost at once, by the cost's name
    (`planes`): against epsilon those that nothing beats at any of theirs.
    """
    return {
        name: list(dict.fromkeys(spot.row for spot in places if spot.on_front))
        for name, places in planes(found).items()
    }


def _cost_of(metric: str) -> tuple[str, float]:
    """Unit and limit of a metric at a cost; empty and zero of any other."""
    if (at := AT_COST.fullmatch(metric)) is None:
        return "", 0.0
    return at["unit"] or EPSILON, float(at["epsilon"] or at["limit"])


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
