"""What the tables of a scorecard say of each method: its numbers by condition, what it needs and
exchanges, and its mean rank.

A condition is a column of such a table and a set of public images. A method that uses none has one
run, in the column `public=none`, which stands beside those of the others in every condition of the
same column.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from metrics.names import CLIENT_FLOPS, LOWER, MEGABYTES_DOWN, MEGABYTES_UP, PROPERTY, facts
from reports.tables.ranking import complete, critical_difference, friedman, front, mean_ranks
from reports.tables.table import Layout, is_number
from results.arrays import unpack
from results.published import format_column, parse_column
from results.record import OK, Record
from results.store import Line

PUBLIC, NO_PUBLIC = "public", "none"
NETWORKS, ALIKE = "networks", "alike"
ACCURACY = "accuracy"
EPSILON = "epsilon"
AT_EPSILON = f"{ACCURACY}-at-epsilon-"
"""Begins the name of accuracy under differential privacy, which ends in its epsilon."""
MEGABYTES = (1, 10, 100)
"""What both ways together may have sent, for accuracy at equal bytes."""
SECONDS = (10, 30, 100)
"""Of computing, for accuracy at equal time."""


@dataclass(frozen=True)
class Condition:
    """Where methods are compared."""

    profile: str
    table: str
    """`league/mnist`."""
    column: str
    """`distribution=iid`."""
    public: str
    networks: str = ALIKE
    """Of the clients."""

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
    values: dict[str, dict[str, float]] = field(default_factory=dict)
    """By metric and condition's key, the mean over seeds."""
    stds: dict[str, dict[str, float]] = field(default_factory=dict)
    properties: dict[str, bool] = field(default_factory=dict)
    """Where its runs differ, the value that `PESSIMIST` gives."""
    sends: set[str] = field(default_factory=set)
    """Kinds of payload that leave a client."""
    cut_short: set[str] = field(default_factory=set)
    """Keys of conditions in which its accuracy had not settled."""


PESSIMIST: Mapping[str, bool] = {
    "distillation": True,
    "param-transfer": True,
    "privacy": False,
    "asynchronous": False,
    "networks-differ": False,
}
"""The value of each property that a method has if any of its runs has it."""


@dataclass(frozen=True)
class Scored:
    """A table of a scorecard: how it is drawn, the lines of its CSV, and its records."""

    layout: Layout
    lines: Sequence[Line]
    records: Sequence[Record]


@dataclass(frozen=True)
class Standings:
    """All methods, and where they were compared."""

    conditions: tuple[Condition, ...]
    methods: tuple[Standing, ...]
    seeds: Mapping[str, int]
    """By condition's key, the fewest of any cell."""

    @property
    def ranked(self) -> tuple[Condition, ...]:
        """Where every method can be: with networks that are alike, if there are such."""
        alike = tuple(condition for condition in self.conditions if condition.networks == ALIKE)
        return alike or self.conditions

    def frame(self, metric: str, conditions: Iterable[Condition] | None = None) -> pd.DataFrame:
        """Values of the methods that are no bounds, by row and condition; of `ranked` where no
        conditions are given.
        """
        keys = [c.key for c in (self.ranked if conditions is None else conditions)]
        ranked = [method for method in self.methods if not method.bound]
        return pd.DataFrame(
            [[m.values.get(metric, {}).get(key, math.nan) for key in keys] for m in ranked],
            index=[m.row for m in ranked],
            columns=keys,
        )

    @property
    def metrics(self) -> list[str]:
        """All metrics that any method has."""
        return list(dict.fromkeys(name for method in self.methods for name in method.values))

    def means(self, metric: str) -> pd.Series:
        """The mean over `ranked` of the methods that have a value in all of them."""
        return complete(self.frame(metric)).mean(axis="columns")


def standings_of(tables: Iterable[Scored]) -> Standings:
    """The standings over all tables together, which are of one profile."""
    conditions: list[Condition] = []
    methods: dict[str, Standing] = {}
    seeds: dict[str, int] = {}
    for table in tables:
        places = _places(table)
        conditions += [condition for at in places.values() for condition in at]
        for row, title in table.layout.rows.items():
            methods.setdefault(row, Standing(row, title, row in table.layout.oracles))
        for line in table.lines:
            at, method = places.get((line["row"], line["column"]), ()), methods[line["row"]]
            if line["status"] != OK or not at:
                continue
            if line["metric"] == PROPERTY:
                holds = parse_column(line["column"])[PROPERTY]
                _add_property(method, holds, line["value"] == "yes")
            elif is_number(line["value"]) and math.isfinite(float(line["value"])):
                for key in (condition.key for condition in at):
                    seeds[key] = min(seeds.get(key, int(line["n"])), int(line["n"]))
                _add(method, line["metric"], at, line)
        for record in table.records:
            if record.status == OK:
                kinds = (kind.partition("/") for kind in record.bytes_by_kind)
                methods[record.row].sends |= {kind for way, _, kind in kinds if way == "up"}
        for (row, column, metric), value in _at_equal_cost(table.records).items():
            for condition in places.get((row, column), ()):
                if condition.key in methods[row].values.get(ACCURACY, {}):
                    methods[row].values.setdefault(metric, {})[condition.key] = value
        for row, column in _cut_short(table.records):
            methods[row].cut_short |= {c.key for c in places.get((row, column), ())}
    found = dict.fromkeys(conditions)
    return Standings(tuple(found), tuple(methods.values()), seeds)


def add_private(found: Standings, scored: Iterable[Scored], private: Iterable[Scored]) -> None:
    """Add accuracy under differential privacy, as `accuracy-at-epsilon-4`, from tables that have a
    column for each epsilon, to the methods of `found` that they have. It stands where the data,
    the rest of the column and the public images are those of a condition of the `scored` tables;
    budgets may be others.
    """
    data = {table.layout.key: line["data"] for table in scored for line in table.lines[:1]}
    methods = {method.row: method for method in found.methods}
    for line in (line for table in private for line in table.lines):
        pairs = parse_column(line["column"])
        epsilon, public = pairs.pop(EPSILON, "inf"), pairs.pop(PUBLIC, NO_PUBLIC)
        wanted = line["status"] == OK and line["metric"] == ACCURACY and epsilon != "inf"
        if not wanted or line["row"] not in methods:
            continue
        at = [
            condition
            for condition in found.ranked
            if condition.column == format_column(pairs)
            and data[condition.table] == line["data"]
            and public in (NO_PUBLIC, condition.public)
        ]
        _add(methods[line["row"]], f"{AT_EPSILON}{epsilon}", at, line)


def _places(table: Scored) -> dict[tuple[str, str], list[Condition]]:
    """The conditions in which each row's run in each column stands.

    A run without public images stands in all of its partition, but for that of a row that has runs
    with public images too, or whose fit looked at an empty public set: these stand nowhere.
    """
    plain: dict[tuple[str, str], tuple[str, str]] = {}
    looked = set()
    for line in table.lines:
        pairs = parse_column(line["column"])
        if pairs.pop(PROPERTY, "") == "distillation" and line["value"] == "yes":
            looked.add((line["row"], format_column(dict(pairs))))
        public = pairs.pop(PUBLIC, NO_PUBLIC)
        plain[line["row"], line["column"]] = (format_column(dict(pairs)), public)
    publics: dict[str, list[str]] = {}
    with_public = set()
    for (row, _), (rest, public) in plain.items():
        if public != NO_PUBLIC:
            with_public.add((row, rest))
            if public not in publics.setdefault(rest, []):
                publics[rest].append(public)
    profile = table.lines[0]["profile"] if table.lines else ""
    places = {}
    for (row, column), (rest, public) in plain.items():
        bare = format_column({k: v for k, v in parse_column(column).items() if k != PROPERTY})
        if public != NO_PUBLIC:
            of = [public]
        elif (row, rest) in with_public or (row, bare) in looked:
            of = []
        else:
            of = publics.get(rest, [NO_PUBLIC])
        pairs = parse_column(rest)
        networks = pairs.pop(NETWORKS, ALIKE)
        where = format_column(pairs)
        places[row, column] = [
            Condition(profile, table.layout.key, where, other, networks) for other in of
        ]
    return places


def _add(method: Standing, metric: str, places: Sequence[Condition], line: Line) -> None:
    for condition in places:
        method.values.setdefault(metric, {})[condition.key] = float(line["value"])
        if line["std"]:
            method.stds.setdefault(metric, {})[condition.key] = float(line["std"])


def _add_property(method: Standing, name: str, holds: bool) -> None:
    if name not in method.properties or holds == PESSIMIST.get(name):
        method.properties[name] = holds


def _cut_short(records: Iterable[Record]) -> set[tuple[str, str]]:
    return {(r.row, r.column) for r in records if r.settled.get(ACCURACY) is False}


def _at_equal_cost(records: Iterable[Record]) -> dict[tuple[str, str, str], float]:
    """Accuracy at equal bytes and at equal time, by row, column and metric: means over seeds, where
    every seed had one.
    """
    found: dict[tuple[str, str, str], list[float]] = {}
    for record in records:
        if record.status != OK or not record.arrays:
            continue
        arrays = unpack(record.arrays)
        accuracy = 100 * arrays[ACCURACY]
        sent, passed = arrays["bytes"] / 1e6, seconds_by_epoch(record, len(accuracy))
        for name, cost, limits in (("mb", sent, MEGABYTES), ("s", passed, SECONDS)):
            for limit in limits:
                key = (record.row, record.column, f"{ACCURACY}-at-{limit}-{name}")
                found.setdefault(key, []).append(reached(accuracy, cost, limit))
    return {
        key: float(np.mean(values)) for key, values in found.items() if np.isfinite(values).all()
    }


def reached(history: np.ndarray, spent: np.ndarray, limit: float) -> float:
    """The last value of a history (n,) whose cost (n,) is within `limit`; not a number where even
    the first costs more.
    """
    within = int(np.searchsorted(spent, limit, side="right"))
    return float(history[within - 1]) if within else math.nan


def seconds_by_epoch(record: Record, epochs: int) -> np.ndarray:
    """Seconds that had passed at the end of each epoch or round of a run's history, (epochs,).

    Time of the history is taken as even: of the whole fit where bytes cross in its rounds, and of
    the server alone, behind all that clients do, where all has crossed before. Nothing where a
    record does not say how long it took.
    """
    local, server = (record.fit_seconds.get(place, math.nan) for place in ("local", "server"))
    share = np.arange(1, epochs + 1) / epochs
    sent = unpack(record.arrays)["bytes"]
    one_shot = epochs > 1 and sent[0] == sent[-1] > 0
    return local + server * share if one_shot else (local + server) * share


def ranking(found: Standings, metric: str = ACCURACY) -> dict[str, Any]:
    """Mean ranks of all methods that have a value in every condition of `found.ranked`, with
    Friedman's p-value and the critical difference.
    """
    values = complete(found.frame(metric))
    ranks = mean_ranks(values, higher=facts(metric).better != LOWER)
    return {
        "metric": metric,
        "mean_rank": {row: float(rank) for row, rank in ranks.items()},
        "conditions": values.shape[1],
        "friedman_p": _finite(friedman(values)),
        "critical_difference": _finite(critical_difference(*values.shape)),
        "not_ranked": sorted(set(found.frame(metric).index) - set(values.index)),
    }


def costs(found: Standings) -> dict[str, pd.Series]:
    """What methods cost, by name: megabytes of both ways together, and work of clients in TFLOP;
    means over conditions, of the methods that have a value in all of them.
    """
    both = found.means(MEGABYTES_UP) + found.means(MEGABYTES_DOWN)
    named = {"megabytes": both, CLIENT_FLOPS: found.means(CLIENT_FLOPS)}
    return {name: values.dropna() for name, values in named.items() if len(values.dropna())}


def fronts(found: Standings, metric: str = ACCURACY) -> dict[str, list[str]]:
    """The methods that nothing beats in mean `metric` and a cost at once, by the cost's name
    (`costs`).
    """
    gains = found.means(metric) * (-1 if facts(metric).better == LOWER else 1)
    shown = {}
    for name, values in costs(found).items():
        rows = [row for row in values.index if row in gains.index]
        on = front([values[row] for row in rows], [gains[row] for row in rows])
        shown[name] = [row for row, is_on in zip(rows, on, strict=True) if is_on]
    return shown


def as_json(found: Standings) -> dict[str, Any]:
    """All of it, as the page and other tools read it."""
    return {
        "conditions": [
            {
                "key": c.key,
                "profile": c.profile,
                "table": c.table,
                "column": c.column,
                "public": c.public,
                "networks": c.networks,
                "seeds": found.seeds.get(c.key, 0),
            }
            for c in found.conditions
        ],
        "methods": [
            {
                "row": m.row,
                "title": m.title,
                "upper_bound": m.bound,
                "properties": m.properties,
                "sends": sorted(m.sends),
                "values": m.values,
                "std": m.stds,
                "cut_short": sorted(m.cut_short),
            }
            for m in found.methods
        ],
        "ranking": ranking(found),
        "fronts": fronts(found),
    }


CONDITION = ("profile", "table", "column", "networks", "public")


def as_csv(found: Standings) -> str:
    """A line for each method, condition and metric."""
    lines = [
        {
            **{name: getattr(condition, name) for name in CONDITION},
            "row": method.row,
            "metric": metric,
            "value": values[condition.key],
            "std": method.stds.get(metric, {}).get(condition.key, math.nan),
            "cut_short": condition.key in method.cut_short,
        }
        for method in found.methods
        for metric, values in method.values.items()
        for condition in found.conditions
        if condition.key in values
    ]
    return str(pd.DataFrame(lines).to_csv(index=False))


def dumped(found: Standings) -> str:
    """`as_json` as text; what is not a number has no place there."""
    return json.dumps(as_json(found), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
